//! Ranges, compared with the answers of Masterminds/semver 3.5.0.

use super::*;

fn range(text: &str) -> VersionRange {
    VersionRange::parse(text).unwrap_or_else(|| panic!("{text:?} cannot be parsed"))
}

fn admits(text: &str, version: &str) -> bool {
    range(text).admits(&super::version(version).unwrap())
}

#[test]
fn versions_are_admitted_as_masterminds_admits_them() {
    for (text, admitted, refused) in [
        ("", &["0.0.0", "2.0.0", "2.0.0-rc.1"][..], &[][..]),
        ("1", &["1.0.0", "1.9.9"], &["2.0.0", "0.9.0", "1.5.0-rc.1"]),
        ("1.2", &["1.2.0", "1.2.9"], &["1.3.0", "1.1.0"]),
        ("1.2.3", &["1.2.3", "1.2.3+b"], &["1.2.4", "1.2.3-rc"]),
        ("=1.2", &["1.2.7"], &["1.3.0"]),
        ("v1.2.3", &["1.2.3"], &["1.2.4"]),
        ("= v1.2.3", &["1.2.3"], &["1.2.4"]),
        ("1.2.x", &["1.2.0", "1.2.9"], &["1.3.0"]),
        ("1.X", &["1.0.0", "1.9.0"], &["2.0.0"]),
        ("*", &["0.0.0", "7.1.2"], &["7.1.2-rc"]),
        ("!=1.2", &["1.3.0", "1.1.9"], &["1.2.0", "1.2.5"]),
        ("!=1", &["2.0.0"], &["1.7.0"]),
        ("!=1.2.3", &["1.2.4"], &["1.2.3"]),
        (">1.2.3", &["1.2.4", "2.0.0"], &["1.2.3"]),
        (">1.2", &["1.3.0"], &["1.2.9", "1.2.0"]),
        (">11", &["12.0.0"], &["11.1.0"]),
        (">=1.2.3 <2", &["1.2.3", "1.99.0"], &["2.0.0", "1.2.2"]),
        (">= 1.2.3, < 2.0.0", &["1.2.3", "1.99.0"], &["2.0.0", "1.2.2"]),
        ("=>1.2.3 =<1.2.4", &["1.2.3", "1.2.4"], &["1.2.5"]),
        ("<=1.2", &["1.2.9", "0.1.0"], &["1.3.0"]),
        ("<=1", &["1.2.9"], &["2.0.0"]),
        ("1.2 - 1.4", &["1.2.0", "1.4.9"], &["1.1.9", "1.5.0"]),
        ("1.2.0 - 1.4.5", &["1.4.5"], &["1.4.6"]),
        ("~1.2.3", &["1.2.3", "1.2.9"], &["1.3.0", "1.2.2"]),
        ("~>1", &["1.0.0", "1.9.0"], &["2.0.0"]),
        ("~0.0.0", &["0.0.0", "9.0.0"], &[]),
        ("^1.2.3", &["1.2.3", "1.9.0"], &["2.0.0", "1.2.2"]),
        ("^0.2.3", &["0.2.9"], &["0.3.0"]),
        ("^0.0.3", &["0.0.3"], &["0.0.4"]),
        ("^0.0", &["0.0.9"], &["0.1.0"]),
        ("^0", &["0.9.0"], &["1.0.0"]),
        ("1.2.3 || >=2 <3", &["1.2.3", "2.5.0"], &["1.2.4", "3.0.0"]),
        // A pre-release in a comparator admits pre-releases for its whole alternative.
        (">=1.0.0-0", &["1.0.0-alpha", "2.0.0-rc.1", "1.0.0"], &["0.9.9"]),
        (">=1.0.0-beta <2", &["1.0.0-rc", "1.5.0-alpha", "2.0.0-rc"], &["1.0.0-alpha", "2.0.0"]),
        ("1.0.0-rc.1", &["1.0.0-rc.1"], &["1.0.0", "1.0.0-rc.2"]),
        (">=1 || 2.0.0-rc", &["2.0.0-rc", "1.5.0"], &["2.0.0-rd", "1.5.0-rc"]),
    ] {
        admitted.iter().for_each(|version| assert!(admits(text, version), "{text} admits {version}"));
        refused.iter().for_each(|version| assert!(!admits(text, version), "{text} does not admit {version}"));
    }
}

#[test]
fn text_that_masterminds_cannot_parse_is_not_a_range() {
    for text in [
        " ",
        "latest",
        "1.2.3.4",
        "1..2",
        ">>1",
        "> =1",
        ">=1.2.3<2",
        "1.2.3,",
        "||",
        "1 ||",
        "1-",
        "1+",
        "=1 - 2",
        "V1",
    ] {
        assert_eq!(VersionRange::parse(text), None, "{text:?}");
    }
    assert_eq!(VersionRange::parse(&"1 ".repeat(300)), None);
}

#[test]
fn a_range_that_admits_one_version_is_a_pin() {
    let effort = Effort::of_review();
    let single = |text: &str| range(text).single(&effort).unwrap().map(|version| version.to_string());
    for pin in
        ["2.0.0", "v2.0.0", "=2.0.0", ">=2.0.0 <=2.0.0", ">=2.0.0, <2.0.1", ">1.9.9 <2.0.1 !=1.9.10 2.0.0", "2.0.0+b"]
    {
        assert_eq!(single(pin).as_deref(), Some("2.0.0"), "{pin}");
    }
    assert_eq!(single("^0.0.3").as_deref(), Some("0.0.3"));
    assert_eq!(single("2.0.0-rc.1").as_deref(), Some("2.0.0-rc.1"));
    assert_eq!(single(">2.0.0-a <2.0.0-a.0.0").as_deref(), Some("2.0.0-a.0"));
    for range in ["", "2", "2.0", "2.0.x", "~2.0.0", "^2.0.0", ">=2.0.0", "2.0.0 || 2.0.1", "*", ">=2.0.0-rc <=2.0.0"] {
        assert_eq!(single(range), None, "{range}");
    }
    // Several pre-releases, or none.
    for range in [">2.0.0-a <2.0.0", ">2.0.0 <2.0.1-rc", "<2.0.0-b >=2.0.0-a", ">2 <1", ">=2.0.0-0 <2.0.0"] {
        assert_eq!(single(range), None, "{range}");
    }
}

#[test]
fn a_pin_with_build_metadata_admits_only_that_build() {
    let effort = Effort::of_review();
    let pins = |text: &str, pending: &str| range(text).is_only(&super::version(pending).unwrap(), &effort).unwrap();
    assert!(pins("2.0.0+1", "2.0.0+1") && pins("2.0.0", "2.0.0+1") && pins("2.0.0-rc.1+1", "2.0.0-rc.1+1"));
    assert!(!pins("2.0.0+2", "2.0.0+1") && !pins("2.0.0+1", "2.0.0") && !pins("2.0.0+1", "2.0.1+1"));
    assert!(!pins("2.0.0", "2.0.0-rc.1") && !pins("2.0.0-rc.1", "2.0.0"));
}

#[test]
fn another_spelling_of_a_range_is_the_same_range() {
    let effort = Effort::of_review();
    let same = |one: &str, other: &str| range(one).admits_the_same(&range(other), &effort).unwrap();
    for (one, other) in [
        ("1", "1.x"),
        ("1", ">=1.0.0 <2.0.0"),
        ("1", "^1.0.0"),
        ("1.2", "~1.2.0"),
        ("1.2.3", "= v1.2.3"),
        (">=1, <2", ">=1 <2"),
        ("1 || 2", ">=1 <3"),
        ("1 - 2", ">=1 <=2"),
        ("*", ">=0.0.0"),
        ("", ">=0.0.0-0"),
    ] {
        assert!(same(one, other) && same(other, one), "{one:?} and {other:?}");
    }
    for (one, other) in [
        ("", "*"),
        ("1", "1.0"),
        ("1.2.3", "1.2.4"),
        (">=1", ">=1 <3"),
        ("1.2.3", "1.2.3-rc"),
        (">=1.0.0", ">=1.0.0-0"),
        ("2.0.0+1", "2.0.0+2"),
        ("2.0.0+1", "2.0.0"),
        (">1.2.3", ">=1.2.3"),
        (">=1.0.0-a", ">1.0.0-a"),
        ("<5", "<5.0.0 !=4.7.1"),
    ] {
        assert!(!same(one, other), "{one:?} and {other:?}");
    }
}

#[test]
fn the_longest_range_is_charged_to_the_budget() {
    let effort = Effort::of_review();
    let long = range("1 ".repeat(255).trim_end());
    assert_eq!(long.admits_the_same(&range("1"), &effort), Ok(true));
    assert!(effort.used() > 0 && effort.used() < 100_000_000, "{}", effort.used());
    assert_eq!(long.single(&Effort::of(100)), Err(OverBudget));
}
