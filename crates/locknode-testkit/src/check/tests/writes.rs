use super::{judge, kind};
use crate::check::resource::resource;

#[test]
fn a_write_after_one_of_a_later_lock_is_late_and_a_fenced_resource_turns_it_away() {
    let locks = "0 c0 calls l0; 10 c0 acquires l0 until 1000 fence 1; \
        2000 c1 calls l1; 2010 c1 acquires l1 until 3000 fence 2";
    let table = "
        in order                            | 500 c0 writes l0 fence 1; 2500 c1 writes l1 fence 2 |
        late, and nobody wrote before       | 5000 c0 writes l0 fence 1 |
        late, and turned away               | 2500 c1 writes l1 fence 2; 5000 c0 writes l0 fence 1 rejected | resource
        late, and taken                     | 2500 c1 writes l1 fence 2; 5000 c0 writes l0 fence 1 | resource fenced-resource
        late twice, told once               | 2500 c1 writes l1 fence 2; 5000 c0 writes l0 fence 1; 5001 c0 writes l0 fence 1 \
                                            | resource fenced-resource
        what was turned away raises nothing | 2500 c1 writes l1 fence 2 rejected; 5000 c0 writes l0 fence 1 | resource
        without tokens nothing is checked   | 2500 c1 writes l1; 5000 c0 writes l0 | resource
        the same lock again                 | 2500 c1 writes l1 fence 2; 2600 c1 writes l1 fence 2 |";
    judge(locks, table, kind, resource);
}

#[test]
fn a_fenced_resource_that_trusts_wrong_tokens_is_found_out() {
    // The later lock has the same token: the tokens do not fall, and still the write is one too many.
    let locks = "0 c0 calls l0; 10 c0 acquires l0 until 1000 fence 2; \
        2000 c1 calls l1; 2010 c1 acquires l1 until 3000 fence 2";
    let row = "the same token | 2500 c1 writes l1 fence 2; 5000 c0 writes l0 fence 2 | resource fenced-resource";
    judge(locks, row, kind, resource);
    let locks = "0 c0 calls l0; 5 c1 calls l1; 10 c0 acquires l0 until 1000 fence 2; 20 c1 acquires l1 until 3000 fence 1";
    // Of two locks acquired at the same moment either may have the higher token; a token lower than an earlier one is wrong.
    let table = "
        a higher token later | 30 c1 writes l1 fence 1; 40 c0 writes l0 fence 2 | resource
        a lower token later  | 30 c0 writes l0 fence 2; 40 c1 writes l1 fence 1 | fenced-resource";
    judge(locks, table, kind, resource);
}
