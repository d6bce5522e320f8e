//! Finds samples by name or file.

use std::{fs, io::Read, path::Path};

use crate::{
    cli::{Exit, Failure},
    event::{RawEvent, sample},
};

/// A message and where it is from.
#[derive(Debug)]
pub(super) struct Picked {
    pub(super) name: String,
    pub(super) raw: RawEvent,
}

/// All that is named, in order. `-` is `stdin`; a built-in name goes before a file of the same name.
pub(super) fn all(names: &[String], stdin: &mut dyn Read) -> Result<Vec<Picked>, Failure> {
    let mut picked = Vec::new();
    for name in names {
        if let Some(built_in) = sample::find(name) {
            picked.push(Picked { name: name.clone(), raw: built_in.raw() });
            continue;
        }
        let text = if name == "-" {
            let mut text = Vec::new();
            stdin.read_to_end(&mut text).map(|_| text).map_err(|error| unread(format!("stdin: {error}")))?
        } else if Path::new(name).exists() {
            fs::read(name).map_err(|error| unread(format!("{name}: {error}")))?
        } else {
            let close = sample::built_in().iter().find(|known| strsim::jaro_winkler(known.name, name) > 0.9);
            let hint = close.map(|known| format!("did you mean {}? ", known.name)).unwrap_or_default();
            let failure = not_found(format!("{name} is neither a built-in sample nor a file"));
            return Err(failure.hint(format!("{hint}`bellhop trigger --list` shows the built-in ones")));
        };
        for (line, message) in sample::parse_all(&text) {
            let place = if line == 0 { name.clone() } else { format!("{name}:{line}") };
            match message {
                Ok(raw) => picked.push(Picked { name: place, raw }),
                Err(error) => {
                    return Err(Failure::usage(format!("{place}: {:#}", anyhow::Error::from(error))));
                }
            }
        }
    }
    Ok(picked)
}

fn unread(message: String) -> Failure {
    Failure::new(Exit::Failed, "failed", message)
}

fn not_found(message: String) -> Failure {
    Failure::new(Exit::NotFound, "not_found", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(name: &str, stdin: &str) -> Result<Vec<Picked>, Failure> {
        all(&[name.to_owned()], &mut stdin.as_bytes())
    }

    #[test]
    fn samples_come_by_name_from_stdin_and_from_files() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "{\"data\": \"a\"}\n{\"data\": \"b\"}\n").unwrap();
        let path = file.path().to_str().unwrap();

        assert_eq!(pick("chat.message", "").unwrap()[0].name, "chat.message");
        assert_eq!(&pick("-", "{\"data\": \"x\"}").unwrap()[0].raw.data[..], b"x");
        let names: Vec<_> = pick(path, "").unwrap().into_iter().map(|one| one.name).collect();
        assert_eq!(names, [format!("{path}:1"), format!("{path}:2")]);
    }

    #[test]
    fn what_does_not_exist_is_not_found_and_the_nearest_name_is_told() {
        let failure = pick("chat.mesage", "").unwrap_err();

        assert_eq!(failure.exit, Exit::NotFound);
        assert!(failure.hint.starts_with("did you mean chat.message?"), "{}", failure.hint);
    }

    #[test]
    fn what_is_there_and_can_not_be_read_is_no_missing_sample() {
        let failure = pick(env!("CARGO_MANIFEST_DIR"), "").unwrap_err();

        assert_eq!((failure.exit, failure.code), (Exit::Failed, "failed"));
    }

    #[test]
    fn a_file_that_is_no_sample_is_a_usage_error() {
        assert_eq!(pick("-", "{\"dat\": 1}").unwrap_err().exit, Exit::Usage);
    }
}
