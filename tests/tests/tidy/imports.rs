//! Files of a crate that import each other in a circle are one file in several pieces: neither can be read, tested or
//! moved without the others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{code, files};

/// What each module imports, by their paths: `a::b`, and nothing for the crate's root.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The circles that are known, by crate: their modules, and why they are there.
const CIRCLES: &[(&str, &[&str], &str)] = &[
    (
        "locknode-engine",
        &["command::scripting", "command::suspended"],
        "a script that takes long begins again apart, and ends as every other",
    ),
    (
        "locknode-engine",
        &["monitors", "observers", "tracking", "watches"],
        "whoever observes takes itself off the list of observers when it ends",
    ),
    (
        "locknode-testkit",
        &["check::expectation", "check::wall_floor"],
        "one function each way",
    ),
    (
        "locknode-testkit",
        &[
            "cluster::command_tap",
            "cluster::net",
            "cluster::recorder",
            "cluster::wire",
        ],
        "the name of a link stands in the net",
    ),
    (
        "locknode-testkit",
        &["cluster::pump", "cluster::relay"],
        "what passes a relay is not a type of its own",
    ),
    (
        "locknode-testkit",
        &[
            "sim::backlog",
            "sim::batch",
            "sim::client",
            "sim::link",
            "sim::node",
            "sim::node::disk",
            "sim::node::ending",
            "sim::oracle",
            "sim::world",
        ],
        "the world is one type over several files",
    ),
    (
        "locknode-testkit",
        &["swarm::faults", "swarm::kinds"],
        "the row of a kind says how it is drawn",
    ),
];

/// The module that a file is; the root of a crate is an empty path.
fn module_of(path: &Path) -> String {
    let path = path.with_extension("");
    let mut parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    if parts
        .last()
        .is_some_and(|last| last == "mod" || last == "lib" || last == "main")
    {
        parts.pop();
    }
    parts.join("::")
}

/// The paths that a tree such as `crate::{a, b::{self, c}}` names.
fn leaves(tree: &str) -> Vec<String> {
    let tree = tree.split(" as ").next().unwrap_or_default().trim();
    let Some((stem, rest)) = tree.split_once('{') else {
        return vec![tree.trim_end_matches("::self").to_owned()];
    };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let mut depth = 0;
    let branches = inner.split(|sign: char| {
        depth += i32::from(sign == '{') - i32::from(sign == '}');
        sign == ',' && depth == 0
    });
    let branches: Vec<&str> = branches.collect();
    let named = branches.iter().filter(|branch| !branch.trim().is_empty());
    named
        .flat_map(|branch| leaves(&format!("{stem}{}", branch.trim())))
        .collect()
}

/// The tree of each `use` statement in a text.
fn trees(text: &str) -> Vec<String> {
    let mut lines = code(text).map(|(_, line)| line.trim());
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let visible = ["pub ", "pub(crate) ", "pub(super) "];
        let line = visible
            .iter()
            .find_map(|it| line.strip_prefix(it))
            .unwrap_or(line);
        let Some(begun) = line.strip_prefix("use ") else {
            continue;
        };
        let mut tree = begun.to_owned();
        while !tree.contains(';') {
            let Some(line) = lines.next() else { break };
            tree.push_str(line);
        }
        found.push(tree.split(';').next().unwrap_or_default().to_owned());
    }
    found
}

/// The path from the root of its crate that an import in a module names; none for one of another crate.
fn absolute(module: &str, import: &str, modules: &BTreeSet<&str>) -> Option<String> {
    let mut path: Vec<&str> = module.split("::").filter(|part| !part.is_empty()).collect();
    let first = import.split("::").next().unwrap_or_default();
    let child = path
        .iter()
        .copied()
        .chain([first])
        .collect::<Vec<_>>()
        .join("::");
    if first == "crate" {
        path.clear();
    } else if first != "super" && first != "self" && !modules.contains(child.as_str()) {
        return None;
    }
    for part in import.split("::") {
        match part {
            "crate" | "self" => {}
            "super" => {
                path.pop();
            }
            name => path.push(name),
        }
    }
    Some(path.join("::"))
}

fn is_ancestor(ancestor: &str, module: &str) -> bool {
    ancestor.is_empty()
        || module
            .strip_prefix(ancestor)
            .is_some_and(|rest| rest.starts_with("::"))
}

/// What the files of a crate import of each other. What a module has from those that it is inside of is apart: they are
/// its house.
fn graph(files: &[(String, String)]) -> Graph {
    let modules: BTreeSet<&str> = files.iter().map(|(module, _)| module.as_str()).collect();
    let mut graph = Graph::new();
    for (module, text) in files {
        let imported = graph.entry(module.clone()).or_default();
        let leaves = trees(text)
            .iter()
            .flat_map(|tree| leaves(tree))
            .collect::<Vec<_>>();
        for path in leaves
            .iter()
            .filter_map(|leaf| absolute(module, leaf, &modules))
        {
            let mut target = path.as_str();
            while !modules.contains(target) {
                target = target.rsplit_once("::").map_or("", |(parent, _)| parent);
            }
            if target != module && !is_ancestor(target, module) {
                imported.insert(target.to_owned());
            }
        }
    }
    graph
}

fn reachable(graph: &Graph, from: &str) -> BTreeSet<String> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(module) = next.pop() {
        for imported in graph.get(module).into_iter().flatten() {
            if seen.insert(imported.clone()) {
                next.push(imported);
            }
        }
    }
    seen
}

/// The sets of modules each of which imports all others, perhaps through others.
fn circles(graph: &Graph) -> BTreeSet<Vec<String>> {
    let reach: BTreeMap<&String, BTreeSet<String>> = graph
        .keys()
        .map(|module| (module, reachable(graph, module)))
        .collect();
    let circle = |module: &String| -> Option<Vec<String>> {
        let reached = reach
            .get(module)
            .filter(|reached| reached.contains(module))?;
        let returns = |other: &&String| reach.get(other).is_some_and(|back| back.contains(module));
        Some(reached.iter().filter(returns).cloned().collect())
    };
    graph.keys().filter_map(circle).collect()
}

fn crates() -> Vec<String> {
    let dirs = std::fs::read_dir(super::root().join("crates")).expect("the crates");
    let names = dirs.map(|dir| {
        dir.expect("a crate")
            .file_name()
            .to_string_lossy()
            .into_owned()
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn no_files_import_each_other_in_a_circle_but_those_that_are_known() {
    let mut found = BTreeSet::new();
    for name in crates() {
        let dir = format!("crates/{name}/src");
        let sources: Vec<(String, String)> = files(&dir)
            .into_iter()
            .filter(|(path, _)| !super::spec::is_test_file(path))
            .map(|(path, text)| {
                (
                    module_of(path.strip_prefix(&dir).expect("in the crate")),
                    text,
                )
            })
            .collect();
        let circles = circles(&graph(&sources));
        found.extend(circles.into_iter().map(|circle| (name.clone(), circle)));
    }
    let known: BTreeSet<(String, Vec<String>)> = CIRCLES
        .iter()
        .map(|(name, modules, _)| {
            (
                (*name).to_owned(),
                modules.iter().map(|it| (*it).to_owned()).collect(),
            )
        })
        .collect();
    let new: Vec<_> = found.difference(&known).collect();
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(
        new.is_empty(),
        "these files import each other in a circle: {new:#?}"
    );
    assert!(
        gone.is_empty(),
        "off the list, there is no such circle any more: {gone:#?}"
    );
}

#[test]
fn a_circle_is_found_through_other_files_and_a_parent_is_none() {
    let file = |module: &str, text: &str| (module.to_owned(), text.to_owned());
    let graph = graph(&[
        file("", "mod a; mod b; mod c;"),
        file("a", "use crate::b::{self, B};\nuse crate::d::deep::Deep;"),
        file("b", "use super::{\n    c::C,\n    d::Sum as Total,\n};"),
        file(
            "c",
            "// use crate::b::B;\nuse std::fmt;\npub(crate) use crate::a::A;",
        ),
        file("d", "mod deep;\npub use deep::Deep;"),
        file(
            "d::deep",
            "use super::Sum;\n#[cfg(test)]\nmod tests { use crate::a::A; }",
        ),
    ]);
    let want = ["a", "b", "c"].map(str::to_owned).to_vec();
    assert_eq!(circles(&graph), BTreeSet::from([want]));
}
