use super::{found, kinds};
use crate::check::resource::resource;
use crate::check::story::Story;
use crate::check::violation::ViolationKind::{FencedResource, Resource};

/// Two locks: one with the token 1, then one with the token 2.
fn story() -> Story {
    Story::new()
        .calls(0, 0, 0)
        .acquired(10, 0, 0, 1000, Some(1))
        .calls(2000, 1, 1)
        .acquired(2010, 1, 1, 3000, Some(2))
}

#[test]
fn a_write_after_one_of_a_later_lock_is_late_and_a_fenced_resource_turns_it_away() {
    let rows = [
        (
            "in order",
            story()
                .wrote(500, 0, Some(1), true)
                .wrote(2500, 1, Some(2), true),
            vec![],
        ),
        (
            "late, and nobody wrote before",
            story().wrote(5000, 0, Some(1), true),
            vec![],
        ),
        (
            "late, and turned away",
            story()
                .wrote(2500, 1, Some(2), true)
                .wrote(5000, 0, Some(1), false),
            vec![Resource],
        ),
        (
            "late, and taken",
            story()
                .wrote(2500, 1, Some(2), true)
                .wrote(5000, 0, Some(1), true),
            vec![Resource, FencedResource],
        ),
        (
            "late twice, told once",
            story()
                .wrote(2500, 1, Some(2), true)
                .wrote(5000, 0, Some(1), true)
                .wrote(5001, 0, Some(1), true),
            vec![Resource, FencedResource],
        ),
        (
            "what was turned away raises nothing",
            story()
                .wrote(2500, 1, Some(2), false)
                .wrote(5000, 0, Some(1), true),
            vec![Resource],
        ),
        (
            "without tokens there is nothing to check",
            story()
                .wrote(2500, 1, None, true)
                .wrote(5000, 0, None, true),
            vec![Resource],
        ),
        (
            "the same lock again",
            story()
                .wrote(2500, 1, Some(2), true)
                .wrote(2600, 1, Some(2), true),
            vec![],
        ),
    ];
    for (name, story, want) in rows {
        assert_eq!(kinds(&found(story, resource)), want, "{name}");
    }
}

#[test]
fn a_fenced_resource_that_trusts_wrong_tokens_is_found_out() {
    // The later lock has the same token: the tokens do not fall, and still the write is one too many.
    let story = Story::new()
        .calls(0, 0, 0)
        .acquired(10, 0, 0, 1000, Some(2))
        .calls(2000, 1, 1)
        .acquired(2010, 1, 1, 3000, Some(2))
        .wrote(2500, 1, Some(2), true)
        .wrote(5000, 0, Some(2), true);
    assert_eq!(kinds(&found(story, resource)), [Resource, FencedResource]);
    // Of locks that were acquired at once either may have the higher token.
    let story = Story::new()
        .calls(0, 0, 0)
        .calls(5, 1, 1)
        .acquired(10, 0, 0, 1000, Some(2))
        .acquired(20, 1, 1, 3000, Some(1))
        .wrote(30, 1, Some(1), true)
        .wrote(40, 0, Some(2), true);
    assert_eq!(kinds(&found(story, resource)), [Resource]);
    // Tokens fall: that alone is wrong, whoever came first.
    let story = Story::new()
        .calls(0, 0, 0)
        .calls(5, 1, 1)
        .acquired(10, 0, 0, 1000, Some(2))
        .acquired(20, 1, 1, 3000, Some(1))
        .wrote(30, 0, Some(2), true)
        .wrote(40, 1, Some(1), true);
    assert_eq!(kinds(&found(story, resource)), [FencedResource]);
}
