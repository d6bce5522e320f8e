//! Resource names: `projects/P/topics/T`, `projects/P/subscriptions/S`.

use tonic::Status;

/// What stands for a topic that was deleted, as in Google's server.
pub(super) const DELETED_TOPIC: &str = "_deleted-topic_";

/// Checks a topic name; `field` is what the error names.
pub(super) fn topic(field: &str, name: &str) -> Result<(), Status> {
    check(field, name, "topics")
}

/// Checks a subscription name.
pub(super) fn subscription(field: &str, name: &str) -> Result<(), Status> {
    check(field, name, "subscriptions")
}

/// Checks `projects/P`.
pub(super) fn project(field: &str, name: &str) -> Result<(), Status> {
    match name.strip_prefix("projects/") {
        Some(id) if is_project(id) => Ok(()),
        _ => Err(invalid(field, "must look like projects/PROJECT")),
    }
}

/// Project and short id of a name that was checked.
pub(super) fn split(name: &str) -> (&str, &str) {
    let mut parts = name.split('/');
    (parts.nth(1).unwrap_or_default(), parts.nth(1).unwrap_or_default())
}

pub(super) fn invalid(field: &str, why: &str) -> Status {
    Status::invalid_argument(format!("{field}: {why}"))
}

fn check(field: &str, name: &str, collection: &str) -> Result<(), Status> {
    let parts: Vec<&str> = name.split('/').collect();
    match parts[..] {
        ["projects", project, kind, id] if kind == collection && is_project(project) => {
            if is_id(id) {
                Ok(())
            } else {
                Err(invalid(
                    field,
                    "the id must be 3 to 255 letters, digits or -._~+%, start with a letter, not with goog",
                ))
            }
        }
        _ => Err(invalid(field, &format!("must look like projects/PROJECT/{collection}/ID"))),
    }
}

fn is_project(id: &str) -> bool {
    !id.is_empty() && id.len() <= 128 && id.chars().all(|c| c.is_ascii_alphanumeric() || "-.:_".contains(c))
}

fn is_id(id: &str) -> bool {
    (3..=255).contains(&id.len())
        && id.starts_with(|first: char| first.is_ascii_alphabetic())
        && !id.to_ascii_lowercase().starts_with("goog")
        && id.chars().all(|c| c.is_ascii_alphanumeric() || "-._~+%".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_must_have_its_shape() {
        for good in ["projects/p/topics/abc", "projects/my-project/topics/a.b_c~d+e%20", "projects/x.com:p/topics/abc"]
        {
            assert!(topic("topic", good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "abc",
            "projects/p/topics/ab",
            "projects/p/topics/1abc",
            "projects/p/topics/google1",
            "projects/p/subscriptions/abc",
            "projects//topics/abc",
            "projects/p/topics/abc/d",
            "projects/p/topics/a bc",
        ] {
            let error = topic("topic", bad).expect_err(bad);
            assert_eq!(error.code(), tonic::Code::InvalidArgument);
            assert!(error.message().starts_with("topic: "), "{error:?}");
        }
    }

    #[test]
    fn a_name_is_split_into_project_and_id() {
        assert_eq!(split("projects/p/subscriptions/sub"), ("p", "sub"));
    }
}
