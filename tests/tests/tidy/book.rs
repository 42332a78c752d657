//! The documents as a book: one index, pages that can be read in one sitting, links that lead somewhere.
//!
//! Nothing here needs mdBook or a network. What is elsewhere in the world (`https:`) is not looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::root;

/// The most lines of a page of `docs/`: with more it has two purposes.
const PAGE_LINES_MAX: usize = 200;

/// Directories in which nobody looks for documents.
const NOT_OURS: [&str; 5] = ["target", ".git", ".interop", "corpus", "node_modules"];

#[test]
fn the_book_has_every_page_once_and_under_its_own_title() {
    let summary = read("docs/SUMMARY.md");
    let chapters: Vec<(String, PathBuf)> = links(&summary)
        .into_iter()
        .map(|link| (link.text, normal(Path::new("docs").join(link.target))))
        .collect();
    let places: Vec<&PathBuf> = chapters.iter().map(|(_, path)| path).collect();
    let unique: BTreeSet<&PathBuf> = places.iter().copied().collect();
    assert_eq!(unique.len(), places.len(), "a page is there twice");
    for path in documents() {
        let is_page = path.starts_with("docs") && path != Path::new("docs/SUMMARY.md");
        assert!(
            !is_page || unique.contains(&path),
            "{} is not in docs/SUMMARY.md",
            path.display()
        );
    }
    for (title, path) in &chapters {
        let text = read(path);
        let heading = text.lines().next().unwrap_or_default();
        assert_eq!(
            heading,
            format!("# {title}"),
            "{} has another title than in docs/SUMMARY.md",
            path.display()
        );
        let lines = text.lines().count();
        assert!(
            !path.starts_with("docs") || lines <= PAGE_LINES_MAX,
            "{} has {lines} lines: give each purpose a page",
            path.display()
        );
    }
}

/// What a reader of the repository sees first, and the side of the book.
#[test]
fn the_table_of_the_documents_and_the_summary_are_one_index() {
    let in_docs = |text: &str| -> Vec<String> {
        let targets = links(text).into_iter().map(|link| link.target);
        targets
            .filter(|target| target.ends_with(".md") && !target.starts_with(".."))
            .collect()
    };
    let table = read("docs/README.md");
    let rows: String = table
        .lines()
        .filter(|line| line.starts_with("| ["))
        .map(|line| format!("{line}\n"))
        .collect();
    let mut chapters = in_docs(&read("docs/SUMMARY.md"));
    chapters.retain(|chapter| chapter != "README.md");
    assert_eq!(in_docs(&rows), chapters);
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let documents: BTreeMap<PathBuf, String> = documents()
        .into_iter()
        .map(|path| (path.clone(), read(path)))
        .collect();
    let anchors: BTreeMap<&Path, BTreeSet<String>> = documents
        .iter()
        .map(|(path, text)| (path.as_path(), anchors(text)))
        .collect();
    let (mut broken, mut count) = (Vec::new(), 0);
    for (path, text) in &documents {
        for link in links(text) {
            if link.target.contains("://") || link.target.starts_with("mailto:") {
                continue;
            }
            count += 1;
            let (file, anchor) = match link.target.split_once('#') {
                Some((file, anchor)) => (file, Some(anchor)),
                None => (link.target.as_str(), None),
            };
            let to = match file {
                "" => path.clone(),
                file => normal(path.parent().unwrap_or(Path::new("")).join(file)),
            };
            let has_anchor = |anchor| anchors.get(&*to).is_some_and(|all| all.contains(anchor));
            if !root().join(&to).exists() || !anchor.is_none_or(has_anchor) {
                broken.push(format!("{}: {}", path.display(), link.target));
            }
        }
    }
    assert!(broken.is_empty(), "dead links:\n{}", broken.join("\n"));
    assert!(count > 150, "only {count} links were found");
}

/// Where a link of a document leads, and what it is written on.
struct Link {
    text: String,
    target: String,
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every document of the repository, by its path in it.
fn documents() -> Vec<PathBuf> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).expect("a directory").flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if path.is_dir() && !NOT_OURS.iter().any(|it| name == *it) {
                walk(&path, found);
            } else if path.extension().is_some_and(|it| it == "md") {
                found.push(path);
            }
        }
    }
    let (root, mut found) = (root(), Vec::new());
    walk(&root, &mut found);
    found.sort();
    let inside = |path: PathBuf| path.strip_prefix(&root).expect("inside").to_owned();
    found.into_iter().map(inside).collect()
}

/// A path without `..` in it.
fn normal(path: PathBuf) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(normal.pop(), "{} is outside", path.display()),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

/// The text without what is shown as it is: blocks of code, and, if so wished, code within a line.
fn prose(text: &str, with_spans: bool) -> String {
    let mut prose = String::new();
    let mut fence: Option<usize> = None;
    for line in text.lines() {
        let ticks = line.trim_start().bytes().take_while(|&b| b == b'`').count();
        match fence {
            Some(open) if ticks >= open => fence = None,
            Some(_) => {}
            None if ticks >= 3 => fence = Some(ticks),
            None => prose.extend([line, "\n"]),
        }
    }
    if with_spans {
        return prose;
    }
    let spans = prose.split('`').enumerate();
    spans
        .filter_map(|(n, part)| (n % 2 == 0).then_some(part))
        .collect()
}

/// The links of a document, as Markdown and as HTML write them.
fn links(text: &str) -> Vec<Link> {
    let prose = prose(text, true);
    let mut found = Vec::new();
    for (at, _) in prose.match_indices("](") {
        let target = &prose[at + 2..];
        let Some((target, _)) = target.split_once(')') else {
            continue;
        };
        let before = &prose[..at];
        // The bracket that this one closes.
        let mut depth = 1;
        let open = before.char_indices().rev().find_map(|(at, c)| {
            match c {
                ']' => depth += 1,
                '[' => depth -= 1,
                _ => {}
            }
            (depth == 0).then_some(at)
        });
        let text = open.map_or("", |open| &before[open + 1..]).to_owned();
        // Something in code that looks like a link: an odd number of ticks before it on its line.
        let line = before.rsplit('\n').next().unwrap_or_default();
        if line.matches('`').count() % 2 == 1 && !text.contains('`') {
            continue;
        }
        found.push(Link {
            text,
            target: target.to_owned(),
        });
    }
    let plain = self::prose(text, false);
    for attribute in ["href=\"", "src=\""] {
        for (at, _) in plain.match_indices(attribute) {
            let target = plain[at + attribute.len()..].split('"').next();
            found.push(Link {
                text: String::new(),
                target: target.unwrap_or_default().to_owned(),
            });
        }
    }
    found
}

/// What a link can point to within a document: its headings, as they are shown on the web, and what HTML names.
fn anchors(text: &str) -> BTreeSet<String> {
    let prose = prose(text, true);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for line in prose.lines() {
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if !(1..=6).contains(&level) || !heading.starts_with(' ') {
            continue;
        }
        let slug = slug(heading.trim());
        let count = seen.entry(slug.clone()).or_default();
        anchors.insert(match *count {
            0 => slug,
            n => format!("{slug}-{n}"),
        });
        *count += 1;
    }
    for (at, _) in prose.match_indices(" id=\"") {
        let name = prose[at + 5..].split('"').next();
        anchors.insert(name.unwrap_or_default().to_owned());
    }
    anchors
}

/// A heading in the form in which addresses name it.
fn slug(heading: &str) -> String {
    let mut slug = String::new();
    for c in heading.to_lowercase().chars() {
        match c {
            ' ' => slug.push('-'),
            c if c.is_alphanumeric() || matches!(c, '-' | '_') => slug.push(c),
            _ => {}
        }
    }
    slug
}

#[test]
fn links_and_anchors_are_found_as_readers_see_them() {
    let text = "# One `two`, three?\n[a `b`](x.md#y) and `[no](no)`\n```\n[no](no)\n```\n## A\n## A\n<a id=\"here\" href=\"z\">";
    let targets: Vec<String> = links(text).into_iter().map(|link| link.target).collect();
    assert_eq!(targets, ["x.md#y", "z"]);
    let expected = ["a", "a-1", "here", "one-two-three"].map(str::to_owned);
    assert_eq!(anchors(text), BTreeSet::from(expected));
}
