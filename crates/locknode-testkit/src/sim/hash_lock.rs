//! A lock held as a hash: the holder is a field, and its value counts how often he has acquired the lock.

use locknode_engine::durable::LockRecord;

/// Acquires the lock, once more if it is the holder's: field, TTL.
pub(crate) const TAKE: &str = "\
    if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then \
        redis.call('HINCRBY', KEYS[1], ARGV[1], 1) \
        redis.call('PEXPIRE', KEYS[1], ARGV[2]) \
        return 1 \
    end \
    return 0";

/// Extends the holder's lock, and changes its count to no less than one: field, TTL, by how much.
pub(crate) const KEEP: &str = "\
    local levels = redis.call('HGET', KEYS[1], ARGV[1]) \
    if not levels then return 0 end \
    if levels + ARGV[3] > 0 then redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[3]) end \
    redis.call('PEXPIRE', KEYS[1], ARGV[2]) \
    return 1";

/// Releases the holder's lock, whatever its count: field.
pub(crate) const FREE: &str = "\
    if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end \
    redis.call('DEL', KEYS[1]) \
    redis.call('PUBLISH', KEYS[1], 'free') \
    return 1";

/// Who holds a lock that is on a disk, and how often; 0 for a token.
pub(crate) fn holder<'a>(lock: &LockRecord<'a>) -> (&'a [u8], u64) {
    if !lock.is_collection {
        return (lock.token, 0);
    }
    // The first byte says that it is a hash; each part has its length before it.
    let rest = lock.token.get(1..).unwrap_or_default();
    let (field, rest) = part(rest);
    let (levels, _) = part(rest);
    let levels = std::str::from_utf8(levels).ok();
    (field, levels.and_then(|it| it.parse().ok()).unwrap_or(1))
}

fn part(bytes: &[u8]) -> (&[u8], &[u8]) {
    let split = || {
        let (len, rest) = bytes.split_first_chunk()?;
        rest.split_at_checked(usize::try_from(u32::from_le_bytes(*len)).ok()?)
    };
    split().unwrap_or_default()
}
