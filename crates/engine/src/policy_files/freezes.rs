//! The freezes of a file: the problems of their windows, and their conversion.

use jiff::Timestamp;

use super::file::{FreezeFile, GlobList, Key, LabelSelectorFile, Moment, PolicyFile, Spanned, namespaces};
use super::problem::{Problems, Span};
use crate::policy::{DayWindow, Freeze, FreezeEffect, FreezeState, Interval, LimitedFreeze, Window};

const MINUTES_A_DAY: u16 = 1_440;

/// The freezes of a file without problems. With a home, they concern only this namespace.
pub(super) fn of_file(file: &PolicyFile, home: Option<&str>) -> impl Iterator<Item = Freeze> {
    with_spans(file, home).map(|(_, freeze)| freeze)
}

/// The freezes of a file for several namespaces. [`Policies`](crate::policy::Policies) adds these namespaces later.
pub(super) fn of_shared(file: &PolicyFile) -> impl Iterator<Item = Freeze> {
    let namespaces = namespaces_in_words(&file.namespaces, &file.namespace_selector);
    of_file(file, None).map(move |freeze| Freeze { scope: format!("{}{namespaces}", freeze.scope), ..freeze })
}

/// The freezes of a file, each with the location of its name.
pub(super) fn with_spans(file: &PolicyFile, home: Option<&str>) -> impl Iterator<Item = (Span, Freeze)> {
    let all = file.freezes.items().iter();
    all.filter_map(move |file| Some((file.name.as_ref()?.span, freeze(file, home)?)))
}

fn freeze(file: &FreezeFile, home: Option<&str>) -> Option<Freeze> {
    let exempt = file.exempt.value();
    let users = exempt.and_then(|exempt| exempt.users.value());
    let groups = exempt.and_then(|exempt| exempt.groups.value());
    Some(Freeze {
        name: file.name.value()?.clone(),
        reason: file.reason.value()?.clone(),
        scope: scope(file, home),
        exemption: exemption(users, groups),
        home: home.map(str::to_owned),
        creation: None,
        window: window(file).ok()??,
        effect: file.effect.value().copied().unwrap_or(FreezeEffect::Deny),
        zone: file.time_zone.value()?.clone(),
        releases: file.releases.globs().cloned(),
        namespaces: namespaces(&file.namespaces, &file.namespace_selector),
        exempt_users: users.map(|list| list.globs.clone()).unwrap_or_default(),
        exempt_groups: groups.map(|list| list.globs.clone()).unwrap_or_default(),
    })
}

/// The releases that a freeze concerns, in words.
fn scope(file: &FreezeFile, home: Option<&str>) -> String {
    let releases =
        file.releases.value().map_or("every release".to_owned(), |list| format!("releases {}", listed(list)));
    let namespaces = home.map_or_else(
        || namespaces_in_words(&file.namespaces, &file.namespace_selector),
        |namespace| format!(" in namespace {namespace}"),
    );
    releases + &namespaces
}

/// A condition on namespaces, in words: ` in namespaces a, b with the labels env=prod`; empty for every namespace.
fn namespaces_in_words(names: &Key<GlobList>, labels: &Key<LabelSelectorFile>) -> String {
    let names = names.value().map(|names| format!(" {}", listed(names)));
    let labels = labels.value().map(|labels| format!(" with the labels {}", labels.selector()));
    if names.is_none() && labels.is_none() {
        return String::new();
    }
    format!(" in namespaces{}{}", names.unwrap_or_default(), labels.unwrap_or_default())
}

/// The exemption of a freeze, in words.
fn exemption(users: Option<&GlobList>, groups: Option<&GlobList>) -> Option<String> {
    let lists = [("users", users), ("groups", groups)].into_iter();
    let all: Vec<_> = lists
        .filter_map(|(what, list)| Some((what, listed(list?))))
        .filter(|(_, globs)| !globs.is_empty())
        .map(|(what, globs)| format!("{what} {globs}"))
        .collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn listed(list: &GlobList) -> String {
    list.globs.texts().join(", ")
}

/// Reports the problems of the freezes of a file, of each one and of each two.
pub(super) fn check(file: &PolicyFile, problems: &mut Problems<'_>) {
    let all = file.freezes.items();
    for (place, one) in all.iter().enumerate() {
        if let Err((span, message)) = window(one) {
            problems.at(span, message);
        }
        for earlier in &all[..place] {
            check_pair(earlier, one, problems);
        }
    }
}

/// Checks two freezes for the same name, and for the same releases.
fn check_pair(earlier: &FreezeFile, one: &FreezeFile, problems: &mut Problems<'_>) {
    let (Some(name), Some(known)) = (one.name.as_ref(), earlier.name.as_ref()) else { return };
    if name.value == known.value {
        problems.at(name.span, format!("two freezes are called `{}`; messages name them", name.value));
    }
    let Some(relation) = relation(earlier, one) else { return };
    let (Some(earlier), Some(one)) = (freeze(earlier, None), freeze(one, None)) else { return };
    match (earlier.effect, one.effect) {
        (FreezeEffect::Deny, FreezeEffect::AllowOnly) => report_denied_window(&earlier, &one, name.span, problems),
        (FreezeEffect::AllowOnly, FreezeEffect::Deny) => report_denied_window(&one, &earlier, name.span, problems),
        (FreezeEffect::Deny, FreezeEffect::Deny) => {
            // A holiday may fall on a weekend.
            if relation == Scopes::Same && one.is_weekly() == earlier.is_weekly() && one.meets(&earlier) {
                let message = format!(
                    "the freezes `{}` and `{}` overlap; the one that ends later counts",
                    earlier.name, one.name
                );
                problems.warn(name.span, message);
            }
        }
        (FreezeEffect::AllowOnly, FreezeEffect::AllowOnly) if one.meets(&earlier) => {}
        (FreezeEffect::AllowOnly, FreezeEffect::AllowOnly) if relation == Scopes::Same => {
            let message = format!(
                "nothing could ever start: the windows of `{}` and `{}` never overlap, and operations start only in both",
                earlier.name, one.name
            );
            problems.at(name.span, message);
        }
        (FreezeEffect::AllowOnly, FreezeEffect::AllowOnly) => {
            let message = format!(
                "the windows of `{}` and `{}` never overlap; of the releases that both concern, nothing could ever start",
                earlier.name, one.name
            );
            problems.warn(name.span, message);
        }
    }
}

fn report_denied_window(deny: &Freeze, only: &Freeze, span: Span, problems: &mut Problems<'_>) {
    if deny.covers(only) {
        let message = format!(
            "`{}` denies the whole window of `{}`; of the releases that both concern, only exempt users could ever start an operation",
            deny.name, only.name
        );
        problems.warn(span, message);
    }
}

/// The scopes of two freezes, compared by the text of their lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scopes {
    Same,
    /// Some releases are in both.
    Overlapping,
}

/// The relation of the scopes of two freezes; `None` if it is not certain that a release is in both.
fn relation(earlier: &FreezeFile, one: &FreezeFile) -> Option<Scopes> {
    let lists = [(&earlier.releases, &one.releases), (&earlier.namespaces, &one.namespaces)];
    let selectors = [earlier, one].map(|file| file.namespace_selector.text());
    let are_selected_alike = selectors[0] == selectors[1];
    if are_selected_alike && lists.iter().all(|(earlier, one)| earlier.text() == one.text()) {
        return Some(Scopes::Same);
    }
    // The files do not say whether a namespace has both labels.
    if !are_selected_alike && selectors.iter().all(Option::is_some) {
        return None;
    }
    let overlap = lists.iter().all(|(earlier, one)| match (earlier.value(), one.value()) {
        (Some(earlier), Some(one)) => has_name_of(earlier, one) || has_name_of(one, earlier),
        _ => true,
    });
    overlap.then_some(Scopes::Overlapping)
}

/// Whether a text of `names` matches a glob of `list`.
fn has_name_of(list: &GlobList, names: &GlobList) -> bool {
    names.texts().any(|name| list.globs.contains(name))
}

/// Reports the freezes of a file that no longer change anything.
pub(super) fn report_past(file: &PolicyFile, home: Option<&str>, now: Timestamp, problems: &mut Problems<'_>) {
    for (span, freeze) in with_spans(file, home) {
        let message = match LimitedFreeze::of_policy(&freeze).at(now) {
            FreezeState::Open(None) => "the freeze is over, and its window does not come again; remove it",
            FreezeState::InForce(None) => {
                "its window is over, so that no operation starts ever again; remove the freeze"
            }
            FreezeState::Open(Some(_)) | FreezeState::InForce(Some(_)) => continue,
        };
        problems.warn(span, message);
    }
}

/// The window of a freeze; `None` if a part of it is wrong and already reported.
fn window(file: &FreezeFile) -> Result<Option<Window>, (Span, String)> {
    let (Some(name), Some(zone)) = (file.name.as_ref(), file.time_zone.value()) else { return Ok(None) };
    let Some(weekdays) = file.weekdays.as_ref() else {
        let (Some(from), Some(to)) = (file.from.as_ref(), file.to.as_ref()) else {
            let message = "a freeze needs `from` and `to` as dates, or `weekdays`";
            return Err((name.span, message.to_owned()));
        };
        let (from_date, to_date) = (dated(from)?, dated(to)?);
        let range = Interval::between(from_date, to_date, zone).map(Window::Range);
        return range.map(Some).ok_or_else(|| {
            (to.span, format!("the window is empty: it ends at {}, and begins at {}", to.text, from.text))
        });
    };
    let days = weekdays.value.clone();
    if let Some((_, twice)) = days.iter().enumerate().find(|(place, day)| days[..*place].contains(day)) {
        return Err((weekdays.span, format!("{twice:?} is listed twice").to_lowercase()));
    }
    let from = file.from.as_ref().map(of_day).transpose()?.unwrap_or(0);
    let to = file.to.as_ref().map(of_day).transpose()?.unwrap_or(MINUTES_A_DAY);
    match (file.from.as_ref(), file.to.as_ref()) {
        (Some(at), _) if from == MINUTES_A_DAY => {
            return Err((
                at.span,
                "a window that begins at 24:00 begins at 00:00 of the next day; list that day".to_owned(),
            ));
        }
        (Some(_), Some(at)) if from == to => {
            let message = "the window begins and ends at the same time; leave out `from` and `to` for whole days";
            return Err((at.span, message.to_owned()));
        }
        _ => {}
    }
    // Midnight at the end of a day is 24:00 of that day.
    let to = if to == 0 { MINUTES_A_DAY } else { to };
    let window = DayWindow { days, from, to };
    if window.is_always() {
        return Err((weekdays.span, "the window has no pause; leave out a day, or set `from` and `to`".to_owned()));
    }
    Ok(Some(Window::Weekly(window)))
}

fn dated(at: &Spanned<Moment>) -> Result<jiff::civil::DateTime, (Span, String)> {
    match at.value {
        Moment::Dated(time) => Ok(time),
        Moment::OfDay(_) => {
            let message = "a time of the day needs `weekdays`; without them, set a date such as 2026-12-20T17:00";
            Err((at.span, message.to_owned()))
        }
    }
}

fn of_day(at: &Spanned<Moment>) -> Result<u16, (Span, String)> {
    match at.value {
        Moment::OfDay(minute) => Ok(minute),
        Moment::Dated(_) => {
            Err((at.span, format!("`{}` is a date; beside `weekdays`, set a time of the day such as 17:00", at.text)))
        }
    }
}

#[cfg(test)]
mod tests;
