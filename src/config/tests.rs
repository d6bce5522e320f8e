//! What users meet: layers, refusals, documentation.

mod documentation;
mod layers;
mod refusals;
mod sections;

use std::{fs, io::Write};

use tempfile::{Builder, NamedTempFile};

use super::{Config, Environment, Flag, Loaded, Problems, Profile, Sources};

/// Enough for `run`.
const ENOUGH: &str = r#"
[pubsub]
project = "my-project"
subscription = "chat-events"
[store]
url = "postgres://bellhop@db/bellhop"
"#;

fn written(text: &str, ending: &str) -> NamedTempFile {
    let mut file = Builder::new().prefix("bellhop").suffix(ending).tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// A configuration file, variables and `--set` flags, as `run` reads them.
fn load(toml: &str, env: &[(&str, &str)], set: &[&str]) -> Result<Loaded, Problems> {
    load_as(Profile::Run, toml, env, set)
}

fn load_as(profile: Profile, toml: &str, env: &[(&str, &str)], set: &[&str]) -> Result<Loaded, Problems> {
    let file = written(toml, ".toml");
    let path = file.path().to_path_buf();
    let shown = path.display().to_string();
    let sources = Sources {
        file: Some(path),
        environment: env.iter().copied().collect(),
        flags: set.iter().map(|text| Flag::from_set(text).unwrap()).collect(),
        profile,
    };
    Config::load(&sources).map_err(|problems| renamed(problems, &shown))
}

/// The file of a test has a name of its own; what users read names theirs.
fn renamed(problems: Problems, path: &str) -> Problems {
    let rename = |list: Vec<super::Problem>| {
        let name = |mut problem: super::Problem| {
            if let super::Origin::File(name) = &mut problem.origin
                && name == path
            {
                "bellhop.toml".clone_into(name);
            }
            problem.key = problem.key.replace(path, "bellhop.toml");
            problem.what = problem.what.replace(path, "bellhop.toml");
            problem
        };
        list.into_iter().map(name).collect()
    };
    Problems { problems: rename(problems.problems), warnings: rename(problems.warnings) }
}

/// Everything wrong, as told to the user.
fn problems(toml: &str, env: &[(&str, &str)], set: &[&str]) -> Vec<String> {
    load(toml, env, set).map_or_else(|found| found.problems.iter().map(ToString::to_string).collect(), |_| Vec::new())
}

/// Everything odd about what would start.
fn warnings(toml: &str, env: &[(&str, &str)]) -> Vec<String> {
    let loaded = load(toml, env, &[]).unwrap();
    loaded.warnings.iter().map(|warning| format!("{}: {}; {}", warning.key, warning.what, warning.fix)).collect()
}

fn project_file(path: &str) -> String {
    fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Asserts that `toml` over what is enough is refused with exactly these words.
fn refused(toml: &str, env: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(problems(&merged(toml), env, &[]), expected, "{toml} {env:?}");
}

/// Asserts that it would start, with exactly these warnings.
fn warned(toml: &str, env: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(warnings(&merged(toml), env), expected, "{toml} {env:?}");
}

/// `section.key = value` lines and rules over what is enough, as one file.
fn merged(lines: &str) -> String {
    let mut text = String::new();
    for (line, key) in [
        ("pubsub.project = \"my-project\"", "pubsub.project"),
        ("pubsub.subscription = \"chat-events\"", "pubsub.subscription"),
        ("store.url = \"postgres://bellhop@db/bellhop\"", "store.url"),
    ] {
        if !lines.contains(&format!("{key} =")) {
            text = format!("{text}{line}\n");
        }
    }
    format!("{text}{}", lines.replace("store.url = none\n", "").replace("pubsub.project = none\n", ""))
}
