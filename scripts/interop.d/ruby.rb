# needs: apt ruby ruby-redis
# frozen_string_literal: true

# What the Ruby lock libraries send, by Debian's redis gem: antirez/redlock-rb (`set nx px`, EVAL)
# and redlock-rb 2 (scripts by the SHA1s it is known for, with SCRIPT LOAD on NOSCRIPT).

require "redis"
require "securerandom"

RESOURCE = "interop:resource"
LONG_TTL = 30_000
SHORT_TTL = 800
PATIENCE = 20

NODES = ENV.fetch("INTEROP_NODES").split(",").map do |address|
  host, port = address.split(":")
  Redis.new(host: host, port: Integer(port))
end
QUORUM = (NODES.size / 2) + 1

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

def check(what, condition)
  raise what unless condition
end

# Plain SET, and EVAL with the script's text in every call.
class ByEval
  RELEASE = <<~LUA
    if redis.call("get", KEYS[1]) == ARGV[1] then
      return redis.call("del", KEYS[1])
    else
      return 0
    end
  LUA

  def lock(node, key, token, ttl)
    node.set(key, token, nx: true, px: ttl)
  end

  def unlock(node, key, token)
    node.eval(RELEASE, [key], [token])
  end
end

# Three scripts, named by SHA1; a node that does not know one is given all three.
class BySha
  LOCK = <<~LUA
    local held = redis.call("get", KEYS[1])
    if held == ARGV[1] or (not held and ARGV[3] == "yes") then
      return redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2])
    end
    return nil
  LUA
  QUERY = 'return {redis.call("get", KEYS[1]), redis.call("pttl", KEYS[1])}'
  TEXTS = { lock: LOCK, unlock: ByEval::RELEASE, query: QUERY }.freeze
  # The names by which redlock-rb 2 asks for its scripts, which a lock node may know at once.
  KNOWN = {
    lock: "ceb2b2062e40c51a2b3963fd078bc71f11bdc65c",
    unlock: "8e4905cee18e7c3188d10f2b8b170e403baed34f",
    query: "78d2ca48a6dc9ef6892059792a3a0c5237733d64"
  }.freeze
  # The names of the texts above.
  OWN = TEXTS.transform_values { |text| Digest::SHA1.hexdigest(text) }.freeze

  # How often a node did not know a script.
  attr_reader :unknown

  def initialize(names)
    @names = names
    @unknown = 0
  end

  def lock(node, key, token, ttl, new: "yes")
    run(node, :lock, [key], [token, ttl, new])
  end

  def extend(node, key, token, ttl)
    lock(node, key, token, ttl, new: "no")
  end

  def unlock(node, key, token)
    run(node, :unlock, [key], [token])
  end

  def query(node, key)
    run(node, :query, [key], [])
  end

  private

  def run(node, name, keys, values)
    node.evalsha(@names.fetch(name), keys, values)
  rescue Redis::CommandError => e
    raise unless e.message.start_with?("NOSCRIPT ")

    @unknown += 1
    loaded = TEXTS.transform_values { |text| node.script(:load, text) }
    node.evalsha(loaded.fetch(name), keys, values)
  end
end

# A lock on all nodes; every node is asked in turn, as the libraries do.
class Redlock
  def initialize(sender)
    @sender = sender
  end

  def lock(ttl)
    token = SecureRandom.random_bytes(20)
    return token if NODES.count { |node| @sender.lock(node, RESOURCE, token, ttl) } >= QUORUM

    unlock(token)
    nil
  end

  def extend(token, ttl)
    NODES.count { |node| @sender.extend(node, RESOURCE, token, ttl) } >= QUORUM
  end

  def unlock(token)
    NODES.sum { |node| @sender.unlock(node, RESOURCE, token) }
  end
end

def everywhere?(&block)
  NODES.all?(&block)
end

def tell(sender)
  redlock = Redlock.new(sender)
  token = redlock.lock(LONG_TTL)
  check "a free resource was refused", token
  check "not on all nodes", everywhere? { |node| node.get(RESOURCE).b == token }
  check "two holders at once", redlock.lock(LONG_TTL).nil?
  check "a stranger released", redlock.unlock("stranger").zero?
  if sender.respond_to?(:query)
    check "not extended", redlock.extend(token, 2 * LONG_TTL)
    check "a stranger extended", !redlock.extend("stranger", LONG_TTL)
    value, ttl = sender.query(NODES[0], RESOURCE)
    check "wrong query", value.b == token && ttl > LONG_TTL && ttl <= 2 * LONG_TTL
  end
  NODES.each { |node| node.script(:flush) }
  check "not released", redlock.unlock(token) == NODES.size
  check "still there", everywhere? { |node| !node.exists?(RESOURCE) }
  expire(redlock)
end

def expire(redlock)
  started = now
  stale = redlock.lock(SHORT_TTL)
  check "a released resource was refused", stale
  token = nil
  until (token = redlock.lock(LONG_TTL))
    check "the lock never expired", now < started + PATIENCE
    sleep 0.005
  end
  check "the lock expired too early", now - started >= SHORT_TTL / 1000.0
  check "released what was lost", redlock.unlock(stale).zero?
  check "not released at the end", redlock.unlock(token) >= QUORUM
end

# A password, a database and a name, as a driver sends them before anything else.
def log_in
  host, port = ENV.fetch("INTEROP_AUTH_NODE").split(":")
  at = { host: host, port: Integer(port) }
  [{}, { password: "wrong" }].each do |wrong|
    Redis.new(**at, **wrong).ping
    raise "let in with #{wrong}"
  rescue Redis::CommandError, Redis::CannotConnectError => e
    check "strange refusal: #{e.message}", e.message.match?(/\A(NOAUTH|WRONGPASS)/)
  end
  client = Redis.new(**at, password: ENV.fetch("INTEROP_PASSWORD"), db: 3, id: "interop")
  check "not let in", client.ping == "PONG" && client.set("interop:login", "in") == "OK"
end

tell(ByEval.new)
known = BySha.new(BySha::KNOWN)
tell(known)
# A lock node knows these from the start and after SCRIPT FLUSH; Redis has to be given them.
knows = ENV.fetch("INTEROP_SERVER") == "locknode"
check "#{known.unknown} times a known script was unknown", knows ? known.unknown.zero? : known.unknown.positive?
tell(BySha.new(BySha::OWN))
log_in
puts "ruby #{RUBY_VERSION} with redis gem #{Redis::VERSION}, as redlock-rb sends it (SET nx px, EVAL, " \
     "EVALSHA: acquire, contend, foreign release, extend, query, script flush, release, expire, " \
     "stale release, binary token, AUTH)"
