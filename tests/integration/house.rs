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

/// What only the machine may say: writes take the values they are given. Listings for operators may ask for a state.
const PROTOCOL: &[&str] = &[
    "epoch + 1",
    "failures + ",
    "lost + ",
    "strict OR",
    "max_failures",
    "max_lost",
    "suspect",
    "Reason::OwnerLost",
    "Reason::TooOld",
    "owner_lost",
    "'requeued'",
    "phase IN",
    "phase = 1",
];

#[test]
fn no_store_knows_the_claim_protocol() {
    let stores: Vec<_> = sources().into_iter().filter(|file| file.path.starts_with("src/store/")).collect();
    assert!(stores.len() > 10, "{} files of stores were read", stores.len());
    let faults: Vec<_> = stores
        .iter()
        .flat_map(|file| {
            let own = file.text.split("#[cfg(test)]").next().unwrap_or_default();
            let said = PROTOCOL.iter().filter(move |words| own.contains(*words));
            said.map(move |words| format!("{} says {words:?}", file.path))
        })
        .collect();

    assert_eq!(faults, [] as [String; 0]);
}

/// A take-over is decided on what was read and guarded by state, epoch and lease: a write that changes what a row means
/// must change one of them. Completions need not: they count whatever the state.
#[test]
fn every_statement_that_changes_claims_changes_state_epoch_or_lease() {
    let mut statements = 0;
    let faults: Vec<_> = text_files()
        .into_iter()
        .filter(|(path, _)| ["src/store/", "docs/", "charts/bellhop/", "deploy/"].iter().any(|at| path.starts_with(at)))
        .flat_map(|(path, text)| {
            let after = text.split("UPDATE claims").skip(1).map(str::to_owned).collect::<Vec<_>>();
            let of_data = after.into_iter().filter(|statement| statement.trim_start().contains(" SET"));
            of_data.map(move |statement| (path.clone(), statement)).collect::<Vec<_>>()
        })
        .filter(|(_, statement)| {
            statements += 1;
            let set = statement.split("WHERE").next().unwrap_or_default();
            !["state =", "epoch =", "lease_until ="].iter().any(|column| set.contains(column))
        })
        .map(|(path, statement)| format!("{path}: UPDATE claims{}", statement.chars().take(80).collect::<String>()))
        .collect();

    assert_eq!(faults, [] as [String; 0]);
    assert!(statements >= 5, "{statements} statements were read");
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
