//! Guesses at misspelt names.

/// The edit distance of two names (Levenshtein), of their first 64 characters.
pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().take(64).enumerate() {
        let mut previous = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let cost = if ca == *cb { previous } else { 1 + previous.min(row[j]).min(row[j + 1]) };
            previous = row[j + 1];
            row[j + 1] = cost;
        }
    }
    row[b.len()]
}

/// Of `candidates` the one most like `name`, if one is: at most two edits away, and fewer than either has characters.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let key = |k: &'a str| (distance(k, name), k);
    candidates.into_iter().filter(|k| *k != name).map(key).filter(|(d, k)| *d <= 2 && *d < k.len().min(name.len())).min().map(|(_, k)| k)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_near() {
        assert_eq!(nearest("dstAdr", ["srcAddr", "dstAddr"]), Some("dstAddr"));
        assert_eq!(nearest("x", ["y"]), None, "one letter is no likeness");
        assert_eq!(nearest("ethernet", ["ipv4"]), None);
    }
}
