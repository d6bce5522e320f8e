//! Reads the text of `/metrics`.

/// One scrape.
#[derive(Debug, Clone)]
pub(crate) struct Scrape {
    lines: Vec<Sample>,
}

/// Series, labels, value.
type Sample = (String, Vec<(String, String)>, f64);

impl Scrape {
    /// Parses the Prometheus text format as far as bellhop writes it.
    pub(crate) fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(parse_line).collect();
        Self { lines }
    }

    /// Sum over all series of `name` (with the prefix) that carry all of `labels`; 0 when there is none.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.lines
            .iter()
            .filter(|(series, has, _)| {
                series == name && labels.iter().all(|(key, value)| has.iter().any(|(k, v)| k == key && v == value))
            })
            .fold(0.0, |sum, (_, _, value)| sum + value)
    }

    /// Whether the family is there at all.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.lines.iter().any(|(series, _, _)| series == name)
    }
}

fn parse_line(line: &str) -> Sample {
    let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("not a sample: {line}"));
    let value = value.parse().unwrap_or_else(|_| panic!("not a number: {line}"));
    let Some((name, rest)) = series.split_once('{') else { return (series.to_owned(), Vec::new(), value) };
    let rest = rest.strip_suffix('}').unwrap_or_else(|| panic!("labels do not end: {line}"));
    let labels = rest
        .split("\",")
        .filter(|label| !label.is_empty())
        .map(|label| {
            let (key, value) = label.split_once("=\"").unwrap_or_else(|| panic!("not a label: {line}"));
            (key.to_owned(), value.trim_end_matches('"').to_owned())
        })
        .collect();
    (name.to_owned(), labels, value)
}

#[test]
fn a_scrape_sums_the_series_that_carry_the_labels() {
    let scrape = Scrape::parse("# HELP a b\na{x=\"1\",y=\"2\"} 3\na{x=\"1\",y=\"4\"} 5\nb 1e3\n");

    assert!((scrape.sum("a", &[("x", "1")]) - 8.0).abs() < f64::EPSILON);
    assert!((scrape.sum("a", &[("y", "4")]) - 5.0).abs() < f64::EPSILON);
    assert!((scrape.sum("b", &[]) - 1000.0).abs() < f64::EPSILON);
    assert!(!scrape.has("c"));
}
