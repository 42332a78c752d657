# needs: gem msgpack:1.4.2 dalli:2.7.11 redis:4.8.1 suo:0.4.0
# nodes: one
# lacks: extend token ttl expiry (whoever comes next decides by its own clock which holder is too old)
# has: wait
# holds: list
# frozen_string_literal: true

# suo: a list of holders in one string, changed under WATCH and MULTI.

require "suo"
require_relative "story/adapter"

# The key holds the tokens; the client keeps its own.
class Client
  def initialize
    @redis = Redis.new(**address(NODES.first))
  end

  def acquire(key, _ttl, _token = nil, seconds: 0.5)
    client = Suo::Client::Redis.new(key, client: @redis, acquisition_timeout: seconds)
    token = client.lock
    @client, @token = client, token if token
    token ? true : false
  end

  def wait(key, ttl)
    acquire(key, ttl, seconds: ttl / 1000.0)
  end

  def query
    @client.locks.any? { |_, token| token == @token }
  end

  def release
    @client.unlock(@token)
    nil
  end
end

serve("suo #{Suo::VERSION} on redis gem #{Redis::VERSION}", Client.new)
