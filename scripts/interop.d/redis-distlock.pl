# needs: cpan Redis@2.000 Redis::DistLock@0.07
# away: down=ok quarantine=fails killed=fails (its release raises what a node replies; its driver does not connect again)
# lacks: extend query token flush (its extension takes the lock from whoever holds it; it loads its scripts once)
# has: wait

# Redis::DistLock on all nodes: SET NX PX and EVALSHA.

use strict;
use warnings;
use Redis::DistLock;

my @nodes = split /,/, $ENV{INTEROP_NODES};
my $lock;

sub manager {
    return Redis::DistLock->new( servers => \@nodes, retry_count => shift, retry_delay => 0.05, logger => sub { } );
}

my $once = manager(1);
my %reply = (
    acquire => sub {
        my ( $key, $ttl ) = @_;
        my $taken = $once->lock( $key, $ttl / 1000 );
        $lock = $taken if $taken;
        return $taken ? "yes" : "no";
    },
    wait => sub {
        my ( $key, $ttl ) = @_;
        $lock = manager( $ttl / 25 )->lock( $key, $ttl / 1000 );
        return $lock ? "yes" : "no";
    },
    # It does not say whether the lock was held.
    release => sub { $once->release($lock); return "done" },
);

$| = 1;
print "ready Redis::DistLock $Redis::DistLock::VERSION on Redis $Redis::VERSION\n";
while ( my $line = <STDIN> ) {
    chomp $line;
    my ( $name, @words ) = split / /, $line;
    my $reply = eval { $reply{$name}->(@words) } // "error $@";
    $reply =~ tr/\r\n/  /;
    print "$reply\n";
}
