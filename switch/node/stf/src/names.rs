//! Finds things by their full names or by suffixes of them, as STF scripts name them.

/// The position of the one name that equals `wanted`, or else of the one that ends with it.
pub fn find<'a>(what: &str, wanted: &str, names: impl Iterator<Item = &'a str> + Clone) -> Result<usize, String> {
    let wanted = brackets(wanted);
    if let Some(i) = names.clone().position(|n| n == wanted) {
        return Ok(i);
    }
    // `b` means `a.b` rather than `a.ab`; only where nothing ends with `.b` will any ending do.
    let dotted = format!(".{wanted}");
    let endings: [&dyn Fn(&str) -> bool; 2] = [&|n| n.ends_with(&dotted), &|n| n.ends_with(wanted.as_str())];
    for matches in endings {
        let found: Vec<(usize, &str)> = names.clone().enumerate().filter(|(_, n)| matches(n)).collect();
        match found.as_slice() {
            [] => continue,
            [(i, _)] => return Ok(*i),
            several => {
                let all: Vec<&str> = several.iter().map(|(_, n)| *n).collect();
                return Err(format!("{what} `{wanted}` may be {}: write the full name", all.join(" or ")));
            }
        }
    }
    let all: Vec<&str> = names.take(12).collect();
    let known = if all.is_empty() { "none".to_string() } else { all.join(", ") };
    Err(format!("there is no {what} `{wanted}`; there is {known}"))
}

/// The key field that a script means; validity may be written `h.$valid$`, `h.valid` or `h`.
pub fn find_key<'a>(wanted: &str, names: impl Iterator<Item = &'a str> + Clone) -> Result<usize, String> {
    let wanted = brackets(wanted);
    let stem = wanted.strip_suffix(".valid").unwrap_or(&wanted);
    for candidate in [wanted.clone(), format!("{wanted}$"), format!("{wanted}.$valid$"), format!("{stem}.$valid$")] {
        if let Some(i) = names.clone().position(|n| n == candidate) {
            return Ok(i);
        }
    }
    if wanted == "valid"
        && let Some(i) = names.clone().position(|n| n.ends_with("$valid$"))
    {
        return Ok(i);
    }
    find("key field", &wanted, names)
}

/// `extra$0.h` stands for `extra[0].h`: brackets were not always part of the format.
fn brackets(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 1);
    let mut rest = name;
    while let Some(i) = rest.find('$') {
        out.push_str(&rest[..i]);
        let digits: String = rest[i + 1..].chars().take_while(char::is_ascii_digit).collect();
        if digits.is_empty() {
            out.push('$');
        } else {
            out.push_str(&format!("[{digits}]"));
        }
        rest = &rest[i + 1 + digits.len()..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_suffix() {
        let names = ["MyIngress.acl", "MyIngress.fwd", "MyEgress.acl2"];
        assert_eq!(find("table", "fwd", names.iter().copied()), Ok(1));
        assert_eq!(find("table", "acl", names.iter().copied()), Ok(0));
        assert_eq!(find("table", "Ingress.acl", names.iter().copied()), Ok(0));
        let error = find("table", "nat", names.iter().copied()).unwrap_err();
        assert!(error.contains("MyIngress.acl") && error.contains("nat"));
        let twice = ["A.acl", "B.acl"];
        assert!(find("table", "acl", twice.iter().copied()).unwrap_err().contains("A.acl or B.acl"));
    }

    #[test]
    fn old_spellings() {
        assert_eq!(brackets("extra$0.h"), "extra[0].h");
        assert_eq!(brackets("h.$valid$"), "h.$valid$");
        let keys = ["extra[0].h", "hdr.ipv4.$valid$"];
        assert_eq!(find_key("extra$0.h", keys.iter().copied()), Ok(0));
        assert_eq!(find_key("hdr.ipv4.valid", keys.iter().copied()), Ok(1));
        assert_eq!(find_key("hdr.ipv4", keys.iter().copied()), Ok(1));
        assert_eq!(find_key("valid", keys.iter().copied()), Ok(1));
    }
}
