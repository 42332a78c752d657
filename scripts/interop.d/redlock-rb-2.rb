# needs: gem redis-client:0.30.0 redlock:2.0.6
# away: down=ok quarantine=fails (locked? and its kin raise what a node that loads replies)
# lacks: token
# has: wait
# frozen_string_literal: true

# redlock-rb on all nodes: three scripts by EVALSHA, with SCRIPT LOAD on NOSCRIPT.

# With the driver that it depends on, whatever else is installed.
gem "redlock"
require "redlock"
require_relative "story/adapter"

# The library's own handle is all that it needs.
class Client
  def initialize
    urls = NODES.map { |node| "redis://#{node}/0" }
    @manager = Redlock::Client.new(urls, retry_count: 0, redis_timeout: 20)
  end

  def acquire(key, ttl, _token = nil, **options)
    lock = @manager.lock(key, ttl, **options)
    @lock = lock if lock
    lock ? true : false
  end

  def wait(key, ttl)
    acquire(key, ttl, retry_count: ttl / 100, retry_delay: 50)
  end

  def extend(ttl)
    acquire(@lock[:resource], ttl, extend: @lock, extend_only_if_locked: true)
  end

  def query
    @manager.valid_lock?(@lock)
  end

  # It does not say whether the lock was held.
  def release
    @manager.unlock(@lock)
    nil
  end
end

# The library loads its driver as it is first used.
client = Client.new
driver = defined?(Redis::VERSION) ? "redis #{Redis::VERSION}" : "redis-client #{RedisClient::VERSION}"
serve("redlock-rb #{Gem.loaded_specs["redlock"].version} on #{driver}", client)
