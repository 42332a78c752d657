# frozen_string_literal: true

# Drives a Ruby library by the lines that story.py describes.

$stdout.sync = true

NODES = ENV.fetch("INTEROP_NODES").split(",").freeze
WORDS = { true => "yes", false => "no", nil => "done" }.freeze

# The parts of HOST:PORT.
def address(text)
  host, port = text.split(":")
  { host: host, port: Integer(port) }
end

# Serves the story. The client has a method for each request, which returns true or false for `yes` or `no`, nil for
# `done`, or a number.
def serve(title, client)
  puts "ready #{title}"
  $stdin.each_line do |line|
    name, *words = line.split
    reply = client.public_send(name, *words.map { |word| word.match?(/\A\d{1,9}\z/) ? Integer(word) : word })
    puts WORDS.fetch(reply, reply)
  rescue StandardError => e
    puts "error #{e.class} #{e.message}".tr("\r\n", "  ")
  end
end
