//! Numbers in a TOML file that no 64-bit type holds.
//!
//! The parser gives up at the first of them, and everything else that is wrong in the file stays untold. Written as floating-point numbers they parse, and are then refused by the key they stand at.

/// The text with such numbers written so that they parse; `None` when there are none.
pub(super) fn tamed(text: &str) -> Option<String> {
    let mut tamed = text.to_owned();
    let mut changed = false;
    // The parser tells the place of the first one that is left.
    while let Err(error) = tamed.parse::<toml::Table>() {
        let number = error.span().and_then(|span| Some((span.clone(), as_float(tamed.get(span)?)?)));
        let Some((span, float)) = number else { break };
        tamed.replace_range(span, &float);
        changed = true;
    }
    changed.then_some(tamed)
}

/// A number beyond the types, in a form that parses.
fn as_float(token: &str) -> Option<String> {
    let digits = token.trim_start_matches(['+', '-']);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let sign = if token.starts_with('-') { "-" } else { "" };
    let plain = digits.replace('_', "");
    let radix = [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().find(|(start, _)| plain.starts_with(start));
    let value = if let Some((start, radix)) = radix {
        let digits = plain.strip_prefix(start)?;
        let fits = i64::from_str_radix(digits, radix).is_ok();
        let fold = |value: f64, digit: u32| value * f64::from(radix) + f64::from(digit);
        let digits: Vec<u32> = digits.chars().map(|c| c.to_digit(radix)).collect::<Option<_>>()?;
        if fits { None } else { Some(digits.into_iter().fold(0.0, fold)) }
    } else if plain.bytes().all(|c| c.is_ascii_digit()) {
        if format!("{sign}{plain}").parse::<i64>().is_ok() { None } else { plain.parse::<f64>().ok() }
    } else {
        let number = plain.bytes().all(|c| c.is_ascii_digit() || b".eE+-".contains(&c));
        plain.parse::<f64>().ok().filter(|value| number && value.is_infinite())
    }?;
    Some(format!("{sign}{:e}", value.min(f64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_beyond_the_types_are_written_anew() {
        for (text, expected) in [
            ("a = 9223372036854775808", "a = 9.223372036854775808e18"),
            ("a = [1, -99_999_999_999_999_999_999, 2]", "a = [1, -1e20, 2]"),
            ("a = 0xFFFF_FFFF_FFFF_FFFF", "a = 1.8446744073709552e19"),
            ("a = -1e400 # 99999999999999999999", "a = -1.7976931348623157e308 # 99999999999999999999"),
        ] {
            let told = tamed(text).unwrap();

            let (wanted, found) = (expected.split(' ').nth(2), told.split(' ').nth(2));
            let number = |text: Option<&str>| text.and_then(|text| text.parse::<f64>().ok());
            assert_eq!(number(wanted), number(found), "{told}");
            assert_eq!(told.len() - found.unwrap().len(), expected.len() - wanted.unwrap().len(), "{told}");
        }
        for text in [
            "a = 9223372036854775807\nb = -9223372036854775808\nc = 1e300\nd = 0x7FFF",
            "a = \"99999999999999999999\"\nb = '99999999999999999999'\nc = \"\\\"99999999999999999999\"",
            "a = \"\"\"\n\" 99999999999999999999 \"\"\"\nb = '''\n' 99999999999999999999 '''",
            "t = 2026-05-04T09:15:30.99999999999999999999Z # 99999999999999999999",
            "a = inf\nb = nan\nc = x99999999999999999999\né = \"é",
            "",
        ] {
            assert_eq!(tamed(text), None, "{text}");
        }
    }
}
