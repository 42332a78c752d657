//! A tiny checker: every tag is closed in order, and attributes are quoted.

/// # Errors
///
/// What is wrong, with the text where it was found.
pub(super) fn well_formed(text: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        if let Some(bad) = rest[..start].find('>') {
            // A style sheet has child selectors, but this one has none.
            return Err(format!("a bare > at {:?}", excerpt(&rest[bad..])));
        }
        entities(&rest[..start])?;
        let inside = &rest[start + 1..];
        let Some(end) = inside.find('>') else {
            return Err(format!("no end of {:?}", excerpt(inside)));
        };
        let tag = &inside[..end];
        rest = &inside[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("{name} is closed and was not open last"));
            }
            continue;
        }
        let is_closed = tag.ends_with('/');
        let tag = tag.trim_end_matches('/');
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(format!("a tag {name:?}"));
        }
        quoted(attributes)?;
        if !is_closed {
            open.push(name);
        }
    }
    entities(rest)?;
    match open.last() {
        Some(name) => Err(format!("{name} is not closed")),
        None => Ok(()),
    }
}

fn quoted(attributes: &str) -> Result<(), String> {
    let mut rest = attributes.trim();
    let mut seen: Vec<&str> = Vec::new();
    while !rest.is_empty() {
        if rest == "hidden" {
            return Ok(());
        }
        let parts = rest
            .split_once("=\"")
            .and_then(|(name, value)| Some((name, value.split_once('"')?)));
        let Some((name, (value, after))) = parts else {
            return Err(format!("an attribute {:?}", excerpt(rest)));
        };
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        if name.is_empty() || !name.bytes().all(is_name) || seen.contains(&name) {
            return Err(format!("an attribute name {name:?}"));
        }
        seen.push(name);
        entities(value)?;
        rest = after.trim_start();
    }
    Ok(())
}

fn entities(text: &str) -> Result<(), String> {
    for after in text.split('&').skip(1) {
        let name = after.split_once(';').map_or("", |(name, _)| name);
        let is_number = name.starts_with('#') && name.len() <= 8;
        if !is_number && !["lt", "gt", "amp", "quot"].contains(&name) {
            return Err(format!("a bare & at {:?}", excerpt(after)));
        }
    }
    Ok(())
}

fn excerpt(text: &str) -> String {
    text.chars().take(60).collect()
}

#[test]
fn what_is_not_well_formed_is_found() {
    for text in [
        "<a><b></a></b>",
        "<a>",
        "</a>",
        "<a b=c/>",
        "<a b=\"c\" b=\"d\"/>",
        "a & b",
        "a > b <a/>",
        "<a b=\"&x;\"/>",
    ] {
        assert!(well_formed(text).is_err(), "{text}");
    }
    assert_eq!(well_formed("<a b=\"c\"><d/>x &lt; &#x41;</a>"), Ok(()));
}
