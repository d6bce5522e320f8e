//! What is set under `[handler]` for a program, and what is wrong with it.

use std::{
    env,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// The keys of `[handler]` that belong to `kind = "exec"`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The program and its arguments. No shell reads it.
    pub command: Vec<String>,
    /// Names of variables that the program gets from bellhop's own environment, beside PATH, HOME and LANG.
    pub env: Vec<String>,
}

impl Config {
    /// Everything that is wrong, as (key under `[handler]`, what to do about it).
    #[must_use]
    pub fn validate(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        match self.command.first().map(String::as_str) {
            None | Some("") => problems.push(("command", "must name a program".to_owned())),
            Some(program) => problems.extend(trouble_with(program).map(|what| ("command", what))),
        }
        if self.command.iter().any(|part| part.contains('\0')) {
            problems.push(("command", "has a NUL character".to_owned()));
        }
        for name in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) {
                problems.push(("env", format!("takes names of variables only, not {name:?}")));
            }
            if name.starts_with("BELLHOP_") || name == "TRACEPARENT" {
                problems.push(("env", format!("can not pass {name} on: bellhop sets it, or is set up by it")));
            }
        }
        problems
    }
}

/// Why `program` can not be run, if so. Looked up as the system does: a name without a slash along PATH.
fn trouble_with(program: &str) -> Option<String> {
    let places: Vec<PathBuf> = if program.contains('/') {
        vec![program.into()]
    } else {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path).map(|folder| folder.join(program)).collect()
    };
    if places.iter().any(|place| is_executable(place)) {
        return None;
    }
    let there = places.iter().any(|place| place.exists());
    Some(if there { format!("{program:?} is not executable") } else { format!("{program:?} was not found") })
}

fn is_executable(place: &Path) -> bool {
    place.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(command: &[&str], env: &[&str]) -> Vec<String> {
        let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let config = Config { command: own(command), env: own(env) };
        config.validate().into_iter().map(|(key, what)| format!("{key} {what}")).collect()
    }

    #[test]
    fn a_program_is_found_by_its_path_or_along_path() {
        assert_eq!(problems(&["sh", "-c", "true"], &["TOKEN"]), [""; 0]);
        assert_eq!(problems(&["/bin/sh"], &[]), [""; 0]);
    }

    #[test]
    fn a_command_that_can_not_be_run_is_a_problem() {
        assert_eq!(problems(&[], &[]), ["command must name a program"]);
        assert_eq!(problems(&[""], &[]), ["command must name a program"]);
        assert_eq!(problems(&["no-such-program"], &[]), [r#"command "no-such-program" was not found"#]);
        assert_eq!(problems(&["./no/such"], &[]), [r#"command "./no/such" was not found"#]);
        assert_eq!(problems(&["/etc/passwd"], &[]), [r#"command "/etc/passwd" is not executable"#]);
        assert_eq!(problems(&["/etc"], &[]), [r#"command "/etc" is not executable"#]);
    }

    #[test]
    fn env_takes_names_and_none_of_bellhops_own() {
        assert_eq!(problems(&["sh"], &["A=b", "", "BELLHOP_TOKEN", "TRACEPARENT"]).len(), 4);
    }

    #[test]
    fn unknown_keys_are_refused() {
        assert!(serde_json::from_str::<Config>(r#"{"commnd": ["x"]}"#).is_err());
    }
}
