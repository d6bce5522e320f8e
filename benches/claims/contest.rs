//! Two that are measured in turns, and how they compare.

use std::io::Write;

use async_trait::async_trait;

/// One side.
#[async_trait]
pub(crate) trait Contestant: Send + Sync {
    /// Runs for a while; what was measured.
    async fn turn(&self) -> anyhow::Result<f64>;
}

/// What a ratio must be for the run to pass.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// One line of the table.
pub(crate) struct Contest {
    what: &'static str,
    ours: Box<dyn Contestant>,
    other: Option<(&'static str, Box<dyn Contestant>)>,
    bound: Option<Bound>,
    /// Ours and the other's, of each round.
    measured: Vec<(f64, f64)>,
}

impl Contest {
    pub(crate) fn of(what: &'static str, ours: impl Contestant + 'static) -> Self {
        Self { what, ours: Box::new(ours), other: None, bound: None, measured: Vec::new() }
    }

    pub(crate) fn beside(mut self, name: &'static str, other: impl Contestant + 'static) -> Self {
        self.other = Some((name, Box::new(other)));
        self
    }

    pub(crate) fn held_to(mut self, bound: Bound) -> Self {
        self.bound = Some(bound);
        self
    }

    /// A turn for each side; in the next round the other one begins. Round 0 is for warming up.
    pub(crate) async fn round(&mut self, round: usize) -> anyhow::Result<()> {
        let Some((_, other)) = &self.other else { return Ok(()) };
        let measured = if round.is_multiple_of(2) {
            let ours = self.ours.turn().await?;
            (ours, other.turn().await?)
        } else {
            let other = other.turn().await?;
            (self.ours.turn().await?, other)
        };
        if round > 0 {
            self.measured.push(measured);
        }
        Ok(())
    }

    pub(crate) fn has(&self, word: &str) -> bool {
        self.what.contains(word) || self.other.as_ref().is_some_and(|(name, _)| name.contains(word))
    }

    pub(crate) fn header() -> String {
        format!(
            "{:<42}{:>12}{:>12}  {:<12}{:>7} {:>16}  bound",
            "medians", "bellhop", "other", "which is", "ratio", "(lowest, highest)"
        )
    }

    pub(crate) fn line(&self) -> String {
        let ratios = self.ratios();
        let of = |side: fn(&(f64, f64)) -> f64| median(self.measured.iter().map(side).collect());
        let other = self.other.as_ref().map_or("", |(name, _)| name);
        let bound = match self.bound {
            Some(Bound::AtLeast(bound)) => format!(">= {bound:.1}"),
            Some(Bound::AtMost(bound)) => format!("<= {bound:.1}"),
            None => String::new(),
        };
        format!(
            "{:<42}{:>12}{:>12}  {other:<12}{:>7.2} {:>16}  {bound}{}",
            self.what,
            short(of(|(ours, _)| *ours)),
            short(of(|(_, other)| *other)),
            median(ratios.clone()),
            format!(
                "({:.2}, {:.2})",
                ratios.iter().copied().fold(f64::MAX, f64::min),
                ratios.iter().copied().fold(0.0, f64::max)
            ),
            if self.holds() { "" } else { "  <- MISSED" }
        )
    }

    pub(crate) fn holds(&self) -> bool {
        let ratio = median(self.ratios());
        match self.bound {
            Some(Bound::AtLeast(bound)) => ratio >= bound,
            Some(Bound::AtMost(bound)) => ratio <= bound,
            None => true,
        }
    }

    fn ratios(&self) -> Vec<f64> {
        self.measured.iter().map(|(ours, other)| ours / other).collect()
    }
}

fn short(value: f64) -> String {
    if value < 100.0 { format!("{value:.2}") } else { format!("{value:.0}") }
}

/// The middle one, or 0 of none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

pub(crate) fn say(line: &str) {
    // Nobody reads it when stdout is closed.
    drop(writeln!(std::io::stdout(), "{line}"));
}
