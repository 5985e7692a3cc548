//! What replays go over, as people write it: policies with their options, and shares of the data that the fast class
//! has room for.

use std::ops::RangeInclusive;

use tanada_replay::{POLICIES, policy};

use crate::failure::{Failure, Outcome};

/// The policies named in `text`, an argument of `option`; each option of a list follows its policy.
pub fn policies(option: &str, text: &str) -> Outcome<Vec<String>> {
    if text.trim() == "all" {
        return Ok(POLICIES.iter().map(|registered| registered.name.to_owned()).collect());
    }
    let is_name =
        |part: &str| POLICIES.iter().any(|registered| part.split(':').next() == Some(registered.name));
    let mut named: Vec<String> = Vec::new();
    for part in text.split(',').map(str::trim) {
        match named.last_mut() {
            // lru:fifo,skip-sequential: what is no policy is the last one's option.
            Some(last) if !is_name(part) && last.contains(':') => *last = format!("{last},{part}"),
            _ => named.push(part.to_owned()),
        }
    }
    if named.iter().any(|name| name == "all") {
        return Err(Failure::usage(format!(
            "{option}: \"all\" stands for itself; leave it out, or the others"
        )));
    }
    for name in &named {
        policy(name, 0).map_err(|error| Failure::usage(format!("{option}: {error}")))?;
    }
    Ok(named)
}

/// Per cent from `least` to 100, ascending as they were given: a list, or A..B in steps of ten.
pub fn shares(option: &str, text: &str, least: u32) -> Outcome<Vec<u32>> {
    let possible = least..=100;
    let shares = match text.split_once("..") {
        Some((from, to)) => steps(from, to, &possible),
        None => text.split(',').map(|text| share(text, &possible)).collect(),
    };
    shares.map_err(|error| Failure::usage(format!("{option}: {error}")))
}

fn steps(from: &str, to: &str, possible: &RangeInclusive<u32>) -> Result<Vec<u32>, String> {
    let (from, to) = (share(from, possible)?, share(to, possible)?);
    if from > to {
        return Err(format!("{from}..{to} is empty"));
    }
    Ok((from..=to).step_by(10).collect())
}

fn share(text: &str, possible: &RangeInclusive<u32>) -> Result<u32, String> {
    match text.trim().trim_end_matches('%').parse::<u32>() {
        Ok(share) if possible.contains(&share) => Ok(share),
        _ => Err(format!("'{text}' is no share; write per cent from {} to 100", possible.start())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_lists_or_steps_of_ten() {
        let all = |text| shares("--fast-share", text, 0);
        assert_eq!(all("10..40").unwrap(), [10, 20, 30, 40]);
        assert_eq!(all("0..100").unwrap().len(), 11);
        assert_eq!(all("5, 25%").unwrap(), [5, 25]);
        for wrong in ["", "x", "40..10", "101", "-1", "1..", "1.5"] {
            assert!(all(wrong).is_err(), "{wrong}");
        }
        let error = shares("--live-share", "0..20", 1).unwrap_err().to_string();
        assert_eq!(error, "--live-share: '0' is no share; write per cent from 1 to 100");
    }

    #[test]
    fn options_stay_with_their_policy() {
        let named = |text| policies("--policy", text);
        assert_eq!(
            named("benefit,lru:fifo,skip-sequential,smq").unwrap(),
            ["benefit", "lru:fifo,skip-sequential", "smq"]
        );
        assert_eq!(named("all").unwrap().len(), POLICIES.len());
        assert!(named("fastest").unwrap_err().to_string().contains("fastest"));
        assert!(named("lru:lifo").is_err());
        assert!(named("benefit,all").unwrap_err().to_string().contains("stands for itself"));
    }
}
