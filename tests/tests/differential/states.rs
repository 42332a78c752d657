//! What lock libraries meet when something goes wrong: no memory left, a script or a transaction that fails half way, a
//! connection that only receives.

use crate::difference::Peculiarities;
use crate::first_mismatch;
use crate::node::Node;
use crate::sequence::Request;
use crate::server::Server;

#[test]
fn what_goes_wrong_goes_wrong_as_on_a_real_server() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let nodes = [Node::new(1), Node::new(8)];
    let peculiarities = Peculiarities::of(&mut server);
    for course in COURSES {
        for protocol in ["HELLO|2", "HELLO|3"] {
            let lines = [protocol].into_iter().chain(course.lines());
            let requests: Vec<Request> = lines
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .map(|line| Request::array(line.split('|').map(word)))
                .collect();
            let mismatch = first_mismatch((&mut server, &nodes), &peculiarities, &requests);
            assert_eq!(mismatch, None, "{protocol}");
        }
    }
}

fn word(word: &str) -> Vec<u8> {
    word.replace("%0A", "\n").into_bytes()
}

/// Requests of one connection, with `|` between their words and `%0A` for a line feed.
const COURSES: [&str; 4] = [NO_MEMORY, HALF_WAY, TRANSACTION, ANOTHER_TYPE];

/// What ends or renews a lock is served where Redis refuses it: HINCRBY of a field that is there, and DEL in a transaction.
const NO_MEMORY: &str = "
    SET|held|mine|PX|60000
    SCRIPT|LOAD|return 1
    CONFIG|SET|maxmemory|1
    SET|other|mine|NX|PX|60000
    HSET|other|holder|1
    EVAL|return redis.call('set','other','mine','px',60000)|0
    EVAL|return redis.call('hincrby','other','holder',1)|0
    EVAL|return redis.pcall('set','other','mine').err|0
    EVAL|return redis.call('pexpire','held',50000)|0
    EVAL|return redis.call('publish','channel','message')|0
    EVAL|return redis.call('del','held')|0
    EVAL|#!lua%0Areturn 1|0
    EVAL|#!lua flags=allow-oom%0Areturn 1|0
    EVAL|redis.call('del','missing') return redis.call('set','other','mine','px',60000)|0
    EVALSHA|e0e1f9fabfc9d4800c877a703b823ac0578ff8db|0
    SCRIPT|LOAD|return 2
    PUBLISH|channel|message
    MULTI
    SET|another|mine
    EXEC
    SUBSCRIBE|channel
    UNSUBSCRIBE|channel
    CONFIG|SET|maxmemory|0
    EXISTS|held|other|another
";

const HALF_WAY: &str = "
    HSET|hash|holder|1
    EVAL|redis.call('set','k','v') return redis.call('incr','hash')|0
    GET|k
    EVAL|redis.call('set','k','w') return redis.call('nosuch')|0
    GET|k
    EVAL|redis.call('set','k','x') error('mine')|0
    GET|k
    EVAL|return redis.call('pexpire','k',0)|0
    EXISTS|k
    EVAL|return redis.call('set','k','v','px',0)|0
    EVAL|return redis.call('set','k','v','px','many')|0
    EVAL|return redis.call('get')|0
    EVAL|return redis.pcall('incr','hash')|0
    EVAL|return redis.pcall('incr','hash').err|0
    EVAL|return redis.error_reply('MINE text')|0
    EVAL|return redis.call('evalsha','ffffffffffffffffffffffffffffffffffffffff',0)|0
    EVALSHA|ffffffffffffffffffffffffffffffffffffffff|0
    EVALSHA_RO|ffffffffffffffffffffffffffffffffffffffff|0
    SCRIPT|EXISTS|ffffffffffffffffffffffffffffffffffffffff
    EXISTS|k
";

const TRANSACTION: &str = "
    HSET|hash|holder|1
    MULTI
    SET|k|v
    INCR|hash
    SET|k|w|PX|0
    SUBSCRIBE|channel
    GET|k
    EXEC
    GET|k
    EVAL|return 1|0
    PING
    UNSUBSCRIBE|channel
    GET|k
    MULTI
    SET|k|w
    NOSUCH
    GET
    EXEC
    GET|k
    EXEC
";

/// A lock that is a hash, at a key that holds a string.
const ANOTHER_TYPE: &str = "
    SET|k|v|PX|60000
    EVAL|if redis.call('exists',KEYS[1]) == 0 or redis.call('hexists',KEYS[1],ARGV[2]) == 1 then redis.call('hincrby',KEYS[1],ARGV[2],1) end return 1|1|k|30000|holder
    EVAL|if redis.call('hincrby',KEYS[1],ARGV[1],-1) == 0 then redis.call('del',KEYS[1]) end return 1|1|k|holder
    HGET|k|holder
    PEXPIRE|k|50000
    GET|k
    DEL|k
    HSET|k|holder|1
    SET|k|v|NX|PX|60000
    SET|k|v|NX|GET|PX|60000
    GET|k
    EVAL|if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end|1|k|v
    PEXPIRE|k|50000
    DEL|k
";
