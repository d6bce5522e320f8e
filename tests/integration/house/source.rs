//! Reads the project's files.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// One file under `src/`.
#[derive(Debug)]
pub(super) struct Source {
    /// From the root of the repository.
    pub(super) path: String,
    /// `store::postgres::claim` for `src/store/postgres/claim.rs`.
    pub(super) module: String,
    /// As it is.
    pub(super) text: String,
    /// Paths behind `crate::`, outside of tests.
    pub(super) imports: BTreeSet<String>,
    /// What the limit counts.
    pub(super) lines_without_tests: usize,
}

impl Source {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let module = path.trim_start_matches("src/").trim_end_matches(".rs").replace('/', "::");
        let own = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let own = own.split("#[cfg(test)]\n        mod tests").next().unwrap_or_default();
        let imports = crate_paths(&without_comments_and_strings(own));
        Self { path: path.to_owned(), module, text: text.to_owned(), imports, lines_without_tests: own.lines().count() }
    }
}

/// Every file under `src/`.
pub(super) fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(&root.join("src"), &mut files);
    assert!(!files.is_empty(), "no source file found");
    files
        .iter()
        .map(|file| {
            let path = file.strip_prefix(root).expect("below the root").to_str().expect("plain names");
            Source::new(path, &fs::read_to_string(file).expect("a readable file"))
        })
        .collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    files.sort();
}

/// Every text file that belongs to the repository, with its content.
pub(super) fn text_files() -> Vec<(String, String)> {
    let root = env!("CARGO_MANIFEST_DIR");
    let listing = Command::new("git")
        .args(["-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .expect("git runs");
    assert!(listing.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listing.stderr));
    let names = String::from_utf8(listing.stdout).expect("plain names");
    names
        .split_terminator('\0')
        .filter_map(|name| Some((name.to_owned(), fs::read_to_string(Path::new(root).join(name)).ok()?)))
        .collect()
}

/// Blanks what the compiler does not read as code. Raw strings and block comments do not occur with `crate::` in them.
fn without_comments_and_strings(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let mut rest = line.chars().peekable();
        let mut in_string = false;
        while let Some(c) = rest.next() {
            match c {
                '\\' if in_string => {
                    rest.next();
                }
                '"' => in_string = !in_string,
                '/' if !in_string && rest.peek() == Some(&'/') => break,
                _ if in_string => {}
                _ => out.push(c),
            }
        }
        out.push('\n');
    }
    out
}

/// Every path that follows `crate::`, groups taken apart: `crate::{a::{B, C}, d}` gives `a::B`, `a::C`, `d`.
fn crate_paths(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (index, _) in code.match_indices("crate::") {
        // `some_crate::` is another word.
        let before = code[..index].chars().next_back();
        if !before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            take_path(&code[index + "crate::".len()..], "", &mut found);
        }
    }
    found
}

/// Reads one path or group at the start of `code`; gives what follows it.
fn take_path<'a>(code: &'a str, prefix: &str, found: &mut BTreeSet<String>) -> &'a str {
    let code = code.trim_start();
    if let Some(mut inner) = code.strip_prefix('{') {
        loop {
            inner = inner.trim_start();
            match inner.chars().next() {
                Some('}') => return &inner[1..],
                Some(',') => inner = &inner[1..],
                Some(_) => inner = skip_alias(take_path(inner, prefix, found)),
                None => return inner,
            }
        }
    }
    let end = code.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '*')).unwrap_or(code.len());
    let (name, rest) = code.split_at(end);
    if name.is_empty() {
        // Nothing that belongs to a path: step over it, so that a group still ends.
        return rest.char_indices().nth(1).map_or("", |(index, _)| &rest[index..]);
    }
    let path = match name {
        "*" | "self" => prefix.to_owned(),
        _ if prefix.is_empty() => name.to_owned(),
        _ => format!("{prefix}::{name}"),
    };
    match rest.trim_start().strip_prefix("::") {
        Some(deeper) if !deeper.starts_with('<') => take_path(deeper, &path, found),
        _ => {
            found.insert(path);
            rest
        }
    }
}

/// Steps over ` as name`.
fn skip_alias(code: &str) -> &str {
    match code.trim_start().strip_prefix("as ") {
        Some(alias) => alias.trim_start().trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'),
        None => code,
    }
}
