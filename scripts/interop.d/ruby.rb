# needs: apt ruby ruby-redis
# each: EVAL known-scripts own-scripts
# also: login scripts
# frozen_string_literal: true

# What the Ruby lock libraries send, by Debian's redis gem: antirez/redlock-rb (`set nx px`, EVAL)
# and redlock-rb 2 (scripts by the SHA1s it is known for, with SCRIPT LOAD on NOSCRIPT).

require "digest"
require "redis"
require_relative "story/adapter"

TEXTS = {
  lock: <<~LUA,
    local held = redis.call("get", KEYS[1])
    if held == ARGV[1] or (not held and ARGV[3] == "yes") then
      return redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2])
    end
    return nil
  LUA
  unlock: <<~LUA,
    if redis.call("get", KEYS[1]) == ARGV[1] then
      return redis.call("del", KEYS[1])
    else
      return 0
    end
  LUA
  query: 'return {redis.call("get", KEYS[1]), redis.call("pttl", KEYS[1])}'
}.freeze
# The names of these texts.
OWN = TEXTS.transform_values { |text| Digest::SHA1.hexdigest(text) }.freeze
# The names by which redlock-rb 2 asks for its scripts, which a lock node may know at once.
KNOWN = {
  lock: "ceb2b2062e40c51a2b3963fd078bc71f11bdc65c",
  unlock: "8e4905cee18e7c3188d10f2b8b170e403baed34f",
  query: "78d2ca48a6dc9ef6892059792a3a0c5237733d64"
}.freeze

# Asks every node in turn, as the libraries do.
class Adapter
  def initialize(variant)
    @variant = variant
    @names = variant == "known-scripts" ? KNOWN : OWN
    @unknown = 0
    @nodes = NODES.map { |text| Redis.new(**address(text)) }
  end

  def forge(key, token)
    @key = key
    @token = [token].pack("H*")
    nil
  end

  def acquire(key, ttl, token)
    forge(key, token)
    return @nodes.count { |node| node.set(@key, @token, nx: true, px: ttl) } if @variant == "EVAL"

    @nodes.count { |node| run(node, :lock, @token, ttl, "yes") }
  end

  def extend(ttl)
    @nodes.count { |node| run(node, :lock, @token, ttl, "no") }
  end

  def query
    left = @nodes.map do |node|
      value, ttl = run(node, :query)
      next ttl if value&.b == @token && node.get(@key).b == @token

      node.exists?(@key) ? 1 : 0
    end
    left.min
  end

  def release
    @nodes.sum { |node| run(node, :unlock, @token) }
  end

  # A password, a database and a name, as a driver sends them before anything else.
  def login(password = nil)
    client = Redis.new(**address(ENV.fetch("INTEROP_AUTH_NODE")), password: password, db: 3, id: "interop")
    raise "no PONG" unless client.ping == "PONG"

    client.set("interop:login", "in") == "OK"
  end

  # A lock node knows redlock-rb's scripts from the start and after SCRIPT FLUSH; Redis has to be given them.
  def scripts
    expected = @variant == "own-scripts" || (@variant == "known-scripts" && ENV.fetch("INTEROP_SERVER") != "locknode")
    raise "#{@unknown} times a script was unknown" if @unknown.positive? != expected
    @nodes.all? { |node| node.script(:flush) == "OK" }
  end

  private

  # Three scripts, named by SHA1; a node that does not know one is given all three.
  def run(node, name, *values)
    return node.eval(TEXTS.fetch(name), [@key], values) if @variant == "EVAL"

    begin
      node.evalsha(@names.fetch(name), [@key], values)
    rescue Redis::CommandError => e
      raise unless e.message.start_with?("NOSCRIPT ")

      @unknown += 1
      TEXTS.each_value { |text| node.script(:load, text) }
      # A node is asked by an unknown name once: more errors are errors to the story.
      @names = OWN
      node.evalsha(@names.fetch(name), [@key], values)
    end
  end
end

serve("ruby #{RUBY_VERSION} with redis gem #{Redis::VERSION}, as redlock-rb sends it", Adapter.new(ARGV[0]))
