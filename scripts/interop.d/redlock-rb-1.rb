# needs: gem redis:4.8.1 redlock:1.3.2
# away: down=fails quarantine=fails (any error of a node is raised)
# lacks: token
# has: wait
# frozen_string_literal: true

# The versions before redlock-rb went from the gem redis to redis-client.

load File.join(__dir__, "redlock-rb-2.rb")
