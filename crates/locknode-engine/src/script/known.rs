//! The SHA1s of the scripts that lock libraries send, and what each of them does.
//!
//! A library requests its script by SHA1 first and sends the text only when the node does not know
//! it; some never send it again, and break when a node restarts. With this table, a node that has
//! never seen the text can run it. Each SHA1 is that of the exact text that the library sends; the
//! behaviour that runs is our own, from `behaviours.rs`. Comments name the libraries, with versions
//! where texts changed.

use crate::script::behaviours::{self, Known};
#[cfg(feature = "compat")]
use crate::script::redisson;

/// Every known script with the SHA1 of its text in lower-case hexadecimal.
pub(crate) fn all_known() -> impl Iterator<Item = (&'static [u8; 40], &'static Known)> {
    let known = KNOWN.iter().map(|(hex, known)| (hex, *known));
    #[cfg(feature = "compat")]
    let known = known.chain(redisson::KNOWN.iter().map(|(hex, known)| (hex, known)));
    known
}

/// Sorted by SHA1.
#[rustfmt::skip]
static KNOWN: [([u8; 40], &Known); 112] = [
    (*b"00583931c4e4d483f6233879c133c71ed5393f9d", &behaviours::RELEASE), // redsync 1 to 4.11
    (*b"009e6775acf362b837433e2ab6f2b772e391079e", &behaviours::EXTEND_BY_SET_OR_TEXT), // redsync 1
    (*b"08741c111900b6318ee3f60cb3c2fa1f6c74d859", &behaviours::RELEASE_GRADED), // Dapr
    (*b"0f0f23b9048b36752b5be114f357ba083449f908", &behaviours::RELEASE_ALL), // node-redlock 4.1, 4.2
    (*b"175897a4e379e99e79a54937be09226f76cdcfe5", &behaviours::ACQUIRE_OR_NIL), // Spring
    (*b"17a49af0c4b1a9034503fa84f3570f5ca76c4cbf", &behaviours::EXTEND_BY_SET), // rslock
    (*b"18b2a577dbe847b16bebde190d69a1613d68e60e", &behaviours::RELEASE), // RedLock.net
    (*b"194f3902b2dd08557818d09fc2e7682d91480e53", &behaviours::RELEASE), // ShedLock
    (*b"1cac51482acf5858da00f6d685d68f886cd6b6b2", &behaviours::EXTEND), // redis-py reacquire
    (*b"1d48b4c6fea2cdadc46b3346de5c2eaf121c7bb3", &behaviours::EXTEND_ALL), // node-redlock 4.1
    (*b"241e4ca540a1cc4ec1f32d9eb9f879e607d7e6e5", &behaviours::RELEASE_OR_ERROR), // aioredlock
    (*b"2e47b373b4dbd63ee966d2eb9fe24ed6a138ad4e", &behaviours::RELEASE), // DistributedLock
    (*b"33f7909e387d5ede77e562c743ec698b78452bf6", &behaviours::ACQUIRE), // redsync (Rust)
    (*b"36c51548bc94e82390cca93961e4cfcd20a2c1f7", &behaviours::RELEASE), // murlock
    (*b"3875d208d9e377969d2022550302cc83ad17b584", &behaviours::ACQUIRE_AT_AND_READ), // rueidislock
    (*b"3e7c6bf3e080bb97a92e77362149c26252b98212", &behaviours::EXTEND_OR_CREATE), // RedLock.net, CRLF
    (*b"411b7c153e0ab3ba59d6d1e36cc7858ebd76f2c5", &behaviours::EXTEND_WITH_TTL), // celery-redbeat
    (*b"4181d5af82ff00f12fe8f2952fed7db5774fc369", &behaviours::ACQUIRE_REENTRANT), // murlock
    (*b"4196d8ada32b6e55d7d1b989bfe626215b911ac7", &behaviours::EXTEND_LATER_OR_ERROR), // lyokato/redlock
    (*b"420ca604de4310d8301943a71390ee669720d640", &behaviours::FIRST_FREE), // Laravel ConcurrencyLimiter
    (*b"4384ed08baff4dd7071b6c78c516a2fded4ee3e7", &behaviours::FORCE_AND_READ), // rueidislock
    (*b"4a484ac024e9b025224cd9f8e1d59dbf3c15d00d", &behaviours::EXTEND_ADDING), // redis-py 2.10 to 3.3
    (*b"4dbb87cd80182f627d42cf6042188ecf00a1ff12", &behaviours::RELEASE), // ioredis-lock 4
    (*b"4e92fdc63815b3a0a2dd1c1df3694de73607c88d", &behaviours::RELEASE), // antirez/redlock-rb, redlock-py
    (*b"50f5ab4d38adaf78b662a67356cf1fe302b3e00f", &behaviours::EXTEND), // ioredis-lock 4
    (*b"514d8d1b08387624661da2a9098d3949b633eb3a", &behaviours::ACQUIRE_EACH), // redlock-universal
    (*b"517e7ed95f00c0c4a209c6a7afcc6ab797d30b85", &behaviours::RELEASE_ALL), // node-redlock 4.0
    (*b"51b433c3cc9a6ca991b3aefec63d23490c246318", &behaviours::DELETE_ANY), // Redisson spin lock
    (*b"53692746b44cae854b8dfa32b177218bbe40baee", &behaviours::EXTEND), // redsync 1.2 to 3
    (*b"544c68b7ffd46e5d7ccc58a27204557efba43310", &behaviours::RELEASE), // redlock (Rust)
    (*b"5688a2541c9edd77746bcd2385e65ff3639a664f", &behaviours::ACQUIRE_OPTIONAL_TTL), // redis-py 2.10
    (*b"594683e49a64ebaf975caf5f8079a1d097c438f1", &behaviours::EXTEND), // redis-semaphore
    (*b"5a22d7e8431313862816d4416b5e46dd70fc340d", &behaviours::EXTEND_ALL_OR_NONE), // bsm/redislock
    (*b"5c252c1a0eaeeb4522fbbb982baba4e74ddfcd0d", &behaviours::RELEASE), // lyokato/redlock
    (*b"5cc368fb92acd8fee3a986dc8e971d6cf28c3b44", &behaviours::RELEASE), // warlock
    (*b"647c65a442733a1aa440f99908d249d13b4d6c4a", &behaviours::RELEASE), // Redis documentation, Laravel
    (*b"6484da7d58920897fdc22b7f9afd1a3d47524ea8", &behaviours::TTL_OR_MINUS_THREE), // bsm/redislock 0.3 to 0.9
    (*b"66e1084c2d842a7e8c271925aae90219fac4e129", &behaviours::SHORTEST_TTL), // bsm/redislock
    (*b"67256370c2d1c87e2250898075542b1a7fa5b917", &behaviours::EXTEND), // ShedLock
    (*b"7157921a7cc7cfba979acf6d63f073151df17d12", &behaviours::RELEASE), // redis-semaphore
    (*b"764ece7daa93da82f4fbf4e82e0ade7067dfec70", &behaviours::RELEASE), // redis-plus-plus
    (*b"7726c7be95e2a0ed082ec1da1e26b562f5c8903f", &behaviours::RELEASE), // rueidislock, older
    (*b"78d2ca48a6dc9ef6892059792a3a0c5237733d64", &behaviours::TOKEN_AND_TTL), // redlock-rb
    (*b"78d3bb55c589f1b2edf66f3527f5017f8dfcd6bb", &behaviours::EXTEND_BY_SET_FROM_KEYS), // warlock
    (*b"7fe7b0bc5c4277123d3b46d49d1c5a8bc6e4fe8a", &behaviours::ACQUIRE_OR_EXTEND), // redlock-rb 0.1
    (*b"80a1b5f2cfccec3b7119ba7721d2127682b691a7", &behaviours::OBTAIN_ONE), // bsm/redislock 0.9
    (*b"852ba6ec6104340ced36643283c856d4698569e4", &behaviours::EXTEND_AT_AND_READ), // rueidislock
    (*b"862f31bf38e9b63ce28d6e9e5143551bb34ef981", &behaviours::ACQUIRE), // node-redlock 1 to 3
    (*b"86e846d831fb0a972d2a2e31cefc3eecd800bf93", &behaviours::RELEASE), // rds_lock, where a key that is not a string counts as free
    (*b"87608090ac58c99da53c8994553c2d33364ff9e2", &behaviours::EXTEND_ANY_OR_ACQUIRE), // Redis::DistLock
    (*b"879e0f7b8d83c3266d4e996627438c05dbda0b89", &behaviours::EXTEND_OR_NIL), // Spring
    (*b"8c2dd3ce05f3aace5fa1002a403139a7fbab3226", &behaviours::EXTEND_AT), // rueidislock, older
    (*b"8e467d99c80d52cb4bf4091bdd2865db5514e78d", &behaviours::EXTEND), // rds_lock, where a key that is not a string counts as free
    (*b"8e4905cee18e7c3188d10f2b8b170e403baed34f", &behaviours::RELEASE), // redlock-rb
    (*b"91d2b7405df91e02c3e2389f7f1c089b9f9e2632", &behaviours::EXTEND_SECONDS_INVERTED), // redlock-rb 0.1
    (*b"9470c810040e272ee6c579d8d4331aaf6332a7b1", &behaviours::RELEASE_ALL_OR_NONE), // bsm/redislock
    (*b"963db4d9f0ccfdb859098be0b29f8b41dc02ed97", &behaviours::RELEASE), // redlock-rb 0 to 1
    (*b"96da70f7716f27d278a5218544df37fd8b0a5e4c", &behaviours::ACQUIRE_ALL), // node-redlock 5
    (*b"994908155dadb1bed08a5af6dee7fedf956c4826", &behaviours::TOKEN_AND_TTL_OR_NIL), // redlock-universal
    (*b"9bdce90060b1eb1923ba581ffba7051865f063d7", &behaviours::RELEASE), // php-redis-lock
    (*b"9eb62214c9af87ae5f9a9f12bb4520281c0d2ae1", &behaviours::RELEASE), // rueidislock
    (*b"9f614a785a5f9ae8c6396c6b4bf94d2087342603", &behaviours::EXTEND_OR_CREATE), // RedLock.net
    (*b"a08c9c69b7c07ae2485190873b90d128a23e502d", &behaviours::ACQUIRE_FREE_SECONDS), // Laravel cache
    (*b"a4aada0b36710970eedaaaeec4a6b7d8c78c4f80", &behaviours::RELEASE), // pottery
    (*b"a4e8783852e6b949f9ef3a97212805108459a890", &behaviours::EXTEND_ADDING_OR_REPLACING), // redis-py
    (*b"a50243715157b186c5162c69e02eff3bf0c7994a", &behaviours::RELEASE), // Laravel ConcurrencyLimiter
    (*b"a7aba3bc5d6e99b3003da8b9d80a63b9f4092ecf", &behaviours::EXTEND), // node-redlock 1 to 3, bsm/redislock 0.3 to 0.9
    (*b"a90bf4be8a6e440e3cc24540eb2f9ff1e16fbcc3", &behaviours::ACQUIRE_IF_ALLOWED_OR_EXTEND), // redlock-rb 0.2 to 1.2
    (*b"acaf90b4697bb48bb5f603e9e613a54df7536c70", &behaviours::EXTEND_ALL), // node-redlock 4.0
    (*b"aed6f382e410db8ba7926d4e5e9aab410bf2a78a", &behaviours::EXTEND_ALL), // node-redlock 5
    (*b"b414769872ec8518662b9f29e83fc691b0349f45", &behaviours::EXTEND), // php-redis-lock
    (*b"b6b55c439e02c6f52ffb8be7ec8c0d0ac816ea79", &behaviours::EXTEND_OR_ACQUIRE), // redsync 4.12
    (*b"ba015a80261b616e7a62d35df0b8e3edbe6c9414", &behaviours::EXTEND), // pottery
    (*b"bec85b1c518b7ba0348a49c79b24adbb1ca95d3b", &behaviours::RELEASE), // redlock-php
    (*b"bf3108245472c550b02852e1e425128e5eb399c4", &behaviours::EXTEND), // ioredis-lock (SHA1 and behaviour from documentation)
    (*b"bfe9502cc2930d7ab50d6d252d1a8a9a10d5964e", &behaviours::RELEASE), // Redis::DistLock
    (*b"c000e088bd4aca36ab429d3b7a16fc736f4cb6f1", &behaviours::EXTEND_ENOUGH_LEFT), // redlock-universal
    (*b"c10e8119872659b926e8e28002d9b7fccbf15617", &behaviours::FORCE_AT_AND_READ), // rueidislock
    (*b"c3f8721cbb97f72bc19e972846bd7aaf91901658", &behaviours::RELEASE), // redis-py
    (*b"c481d49b4a48e48a9eeacd5d51655b5fcbb19925", &behaviours::TIME_PROBE), // Symfony
    (*b"c75a9bf1538efcdb1f383acc3e273c5089d57e58", &behaviours::ACQUIRE_OR_ERROR), // aioredlock
    (*b"cb0427378f700ddb2f0e9394dbb0a40bd6dba04a", &behaviours::RELEASE), // RedLock.net, CRLF
    (*b"cd1ae9bb543136ebc0a80a277cd59a7cec83b296", &behaviours::TOKEN_AND_TTL), // redlock-rb 1.2
    (*b"ce46f80993d5dac20dd066eb301a4e37994bdbed", &behaviours::EXTEND_ALL), // node-redlock 4.1, 4.2
    (*b"ceb2b2062e40c51a2b3963fd078bc71f11bdc65c", &behaviours::ACQUIRE_IF_ALLOWED_OR_EXTEND), // redlock-rb
    (*b"cf0e94b2e9ffc7e04395cf88f7583fc309985910", &behaviours::RELEASE), // node-redlock 1 to 3, bsm/redislock 0.3 to 0.9
    (*b"d01fb69e6ecc8bad3ca9bacba9f4f9e96862313f", &behaviours::ACQUIRE_ALL), // node-redlock 4.0
    (*b"d220654d7721ae520b15ed0e24a4cc97024efa08", &behaviours::RELEASE), // php-lock, redsync (Rust)
    (*b"d2ff380d5de50a7786cba5eaee0a403ee436dc86", &behaviours::RELEASE), // rust_redlock
    (*b"d47ad020f050dc2f2fb7d0f805d03ac61d01e56a", &behaviours::ACQUIRE), // rust_redlock
    (*b"d5f94f1848f0c54fff99d99dbc4d54184a157c02", &behaviours::EXTEND_SECONDS_OR_PERSIST), // Laravel
    (*b"d60073fe44bfb2f9041c08850d82d7a793a27720", &behaviours::EXTEND), // rust_redlock
    (*b"d75bb8b5bd13532ddedd17762e772346e39b321e", &behaviours::EXTEND), // redsync 4
    (*b"d9558fccdcd78dcea082d72df1b67924077deac2", &behaviours::EXTEND), // redis-plus-plus
    (*b"da225123b2af4a41136fdba7ffac1e045e344da1", &behaviours::RELEASE), // ioredis-lock (SHA1 and behaviour from documentation)
    (*b"daf86bbf8740dd3ca86733367a016364b2110627", &behaviours::RELEASE), // rslock
    (*b"dd40885e105db8188de0c80c96c10610b86cdb33", &behaviours::EXTEND), // redsync (Rust)
    (*b"e218d686a8f90368e5cd45074f06ce766cad9987", &behaviours::EXTEND), // redlock-universal
    (*b"e4612211c9f8f51c257e26e056b0a654b3187242", &behaviours::RELEASE_ALL), // node-redlock 5
    (*b"e5a322e2634ef59a516e8ea150cb085afafee684", &behaviours::ACQUIRE_ALL), // node-redlock 4.1, 4.2
    (*b"e63c1bdcff89893c1242d737ef2971b3f2f9ea96", &behaviours::RELEASE), // redis-lock-py
    (*b"e950836ed1e694540c503ef9972b8de518044d3b", &behaviours::RELEASE_ABSENT_MINUS_ONE), // redsync 4.12
    (*b"e95849a1757fe494b3c802dc09b717d0c074eb21", &behaviours::EXTEND), // DistributedLock
    (*b"e9f2c3ae5fe1e6ddee95586b3d29f0b154e6e508", &behaviours::ACQUIRE_FREE), // rds_lock
    (*b"e9f69f2beb755be68b5e456ee2ce9aadfbc4ebf4", &behaviours::RELEASE), // one line with single quotes
    (*b"eb0c00d98f6f33b4262419a509002884540f30be", &behaviours::OBTAIN_ALL), // bsm/redislock
    (*b"f0f9038aa2b6d6c3436c72d147573ea2a58f0ef2", &behaviours::RELEASE_OR_NIL), // Spring
    (*b"f5f7bd3a3aa4a63c507c1155c5ea1219b350d992", &behaviours::TTL_OR_ZERO), // pottery
    (*b"f908d3f43dbcabc68fc0c9ecaf1fa4a285ecdb0a", &behaviours::TTL_OR_ERROR), // aioredlock
    (*b"fa3d1aaa7e4145457755016a3d5daf72fa7a11bf", &behaviours::ACQUIRE_AND_READ), // rueidislock
    (*b"fd83166fb3d7235e3ace652b700c9e217c1adc1f", &behaviours::RELEASE), // redlock-universal
    (*b"fed16109024d968d9496e4140fe1355bac05ebff", &behaviours::EXTEND_SECONDS_WITH_TTL), // python-redis-lock
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_has_no_script_twice() {
        assert!(KNOWN.is_sorted_by(|left, right| left.0 < right.0));
    }

    #[test]
    fn every_sha1_is_lower_case_hexadecimal() {
        let digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        assert!(all_known().all(|(hex, _)| hex.iter().all(digit)));
    }

    #[test]
    fn every_behaviour_belongs_to_some_library() {
        for behaviour in behaviours::ALL {
            assert!(
                KNOWN.iter().any(|(_, known)| known.name == behaviour.name),
                "{}",
                behaviour.name
            );
        }
    }
}
