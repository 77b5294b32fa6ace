//! Addresses without passwords, for logs and the page.

/// Returns the address without its user and password, wherever they are in it.
pub fn without_password(address: &str) -> String {
    let (scheme, rest) =
        address.split_once("://").map_or(("", address), |(scheme, rest)| (scheme, rest));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let Some((_, host)) = authority.rsplit_once('@') else { return address.to_owned() };
    let separator = if scheme.is_empty() { "" } else { "://" };
    format!("{scheme}{separator}***@{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_left_out_and_nothing_else() {
        let check = |address: &str, expected: &str| assert_eq!(without_password(address), expected);
        check("http://localhost:9093/am", "http://localhost:9093/am");
        check("http://ann:secret@localhost:9093/am", "http://***@localhost:9093/am");
        check("http://ann:s@cr@t@am:9093?a=b@c", "http://***@am:9093?a=b@c");
        check("http://am:9093/a@b", "http://am:9093/a@b");
        check("ann:secret@am:9093", "***@am:9093");
        check("https://token@am", "https://***@am");
    }
}
