//! Holds the project to its own plan: floors, file sizes, names, words.

mod floors;
mod source;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use self::{
    floors::{Floor, floor_of},
    source::{Source, sources, text_files},
};

/// Lines of a file without its tests. Aim at 120; this is the end.
const MOST_LINES: usize = 400;

const BANNED_NAMES: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "manager", "service", "services", "types", "data", "misc", "mod"];

#[test]
fn every_file_imports_its_own_floor_or_lower_ones() {
    let faults: Vec<_> = sources()
        .iter()
        .flat_map(|file| {
            file.imports.iter().filter_map(|target| {
                let (from, to) = (floor_of(&file.module)?, floor_of(target)?);
                (to > from).then(|| format!("{} ({from:?}) imports {target} ({to:?})", file.path))
            })
        })
        .collect();

    assert_eq!(faults, [] as [String; 0]);
}

#[test]
fn every_module_has_a_floor() {
    let faults: Vec<_> =
        sources().iter().filter(|file| floor_of(&file.module).is_none()).map(|file| file.path.clone()).collect();

    assert_eq!(faults, [] as [String; 0], "add it to the table in tests/integration/house/floors.rs, and to DESIGN");
}

#[test]
fn adapters_never_import_each_other() {
    let faults: Vec<_> = sources()
        .iter()
        .filter_map(|file| Some((file, floors::adapter(&file.module)?)))
        .flat_map(|(file, own)| {
            file.imports.iter().filter_map(move |target| {
                let other = floors::adapter(target)?;
                (other != own).then(|| format!("{} imports {target}", file.path))
            })
        })
        .collect();

    assert_eq!(faults, [] as [String; 0]);
}

#[test]
fn modules_of_a_floor_form_no_cycle() {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in sources().iter().filter(|file| floor_of(&file.module) != Some(Floor::Testing)) {
        let own = floors::unit(&file.module);
        let targets = file.imports.iter().map(|target| floors::unit(target)).filter(|target| *target != own);
        uses.entry(own.clone()).or_default().extend(targets);
    }

    let cycle = uses.keys().find_map(|start| path_back(&uses, start));

    assert_eq!(cycle, None);
}

/// A way from `start` to itself, if there is one.
fn path_back(uses: &BTreeMap<String, BTreeSet<String>>, start: &str) -> Option<Vec<String>> {
    let mut ways = vec![vec![start.to_owned()]];
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop() {
        for next in uses.get(way.last()?).into_iter().flatten() {
            let mut longer = way.clone();
            longer.push(next.clone());
            if next == start {
                return Some(longer);
            }
            if seen.insert(next.clone()) {
                ways.push(longer);
            }
        }
    }
    None
}

#[test]
fn no_file_is_longer_than_one_can_hold_in_mind() {
    let faults: Vec<_> = sources()
        .iter()
        .filter(|file| file.lines_without_tests > MOST_LINES)
        .map(|file| format!("{} has {} lines", file.path, file.lines_without_tests))
        .collect();

    assert_eq!(faults, [] as [String; 0]);
}

#[test]
fn every_file_says_first_what_it_is_for() {
    let faults: Vec<_> =
        sources().iter().filter(|file| !file.text.starts_with("//! ")).map(|file| file.path.clone()).collect();

    assert_eq!(faults, [] as [String; 0]);
}

#[test]
fn no_file_has_a_name_that_says_nothing() {
    let faults: Vec<_> = sources()
        .iter()
        .map(|file| &file.path)
        .filter(|path| {
            let stem = Path::new(path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            stem.split('_').any(|word| BANNED_NAMES.contains(&word))
                || Path::new(path).iter().any(|part| BANNED_NAMES.iter().any(|name| part == *name))
        })
        .cloned()
        .collect();

    assert_eq!(faults, [] as [String; 0]);
}

#[test]
fn nothing_points_outside_the_repository() {
    // Put together here, so that this file does not hold them itself.
    let words =
        [["..", "/shared"], ["/work", "/"], ["/home", "/"], ["/Users", "/"], ["~/.", "cargo"], ["DO NOT ", "MERGE"]];
    let words = words.map(|halves| halves.concat());

    let faults: Vec<_> = text_files()
        .iter()
        .flat_map(|(path, text)| {
            let held = words.iter().filter(|word| text.contains(word.as_str()));
            held.map(move |word| format!("{path} holds {word}"))
        })
        .collect();

    assert_eq!(faults, [] as [String; 0]);
}

#[test]
fn imports_are_found_however_they_are_written() {
    let text = "
        use crate::{claim::{Claim, Key}, store::postgres};
        use crate::event::Event as E;
        pub(crate) use crate::source::*;
        // use crate::commented::Out;
        fn f() -> crate::retry::Backoff { let s = \"crate::in_a_string\"; crate::server::x() }
        #[cfg(test)]
        mod tests { use crate::only_in_tests; }
    ";

    let found = Source::new("src/x.rs", text).imports;

    let expected =
        ["claim::Claim", "claim::Key", "event::Event", "retry::Backoff", "server::x", "source", "store::postgres"];
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}
