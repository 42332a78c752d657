# needs: gem redis:4.8.1 redis-namespace:1.9.0 redis-classy:2.4.1 redis-mutex:4.0.2
# nodes: one
# lacks: extend token ttl
# has: wait
# prefix: RedisMutex:
# frozen_string_literal: true

# redis-mutex: SETNX of the time at which the lock ends, GETSET when it has, and DEL.

require "redis-mutex"
require_relative "story/adapter"

RedisClassy.redis = Redis.new(**address(NODES.first))

# A mutex for each try, since it forgets when it held the lock.
class Client
  def acquire(key, ttl, _token = nil, block: 0)
    mutex = RedisMutex.new(key, block: block, sleep: 0.02, expire: ttl / 1000.0)
    held = mutex.lock
    @mutex = mutex if held
    held
  end

  def wait(key, ttl)
    acquire(key, ttl, block: ttl / 1000)
  end

  def query
    @mutex.locked?
  end

  def release
    @mutex.unlock
  end
end

serve("redis-mutex #{Gem.loaded_specs["redis-mutex"].version} on redis gem #{Redis::VERSION}", Client.new)
