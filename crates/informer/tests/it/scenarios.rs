//! Stories of listing and watching, told to the reflector's machine: `scenarios/*.txt`.
//!
//! A line with `>` is something that happens, after `+TIME` if that is given; the lines below it are what the
//! machine wants done. `> wait` lets the time pass until the machine's own deadline. The first line is the
//! promise, and `settings:` may change some. The seed is fixed, so delays are what they are.
//!
//! `INFORMER_SCENARIOS=write cargo test -p informer --test it scenarios` writes the answers down; read the
//! difference before you keep it.

use std::{fs, path::Path, time::Duration};

use informer::{
    model::{Reason, ResourceVersion, Status, StatusCause},
    reflector::{Action, Input, Machine, ReflectorSettings},
    source::{ListOptions, PageEnd, SourceError, WatchChange},
};

#[test]
fn c01_to_c13_the_machine_tells_every_story_as_it_is_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let write = std::env::var("INFORMER_SCENARIOS").is_ok_and(|value| value == "write");
    let mut stories: Vec<_> =
        fs::read_dir(folder).expect("scenarios").map(|entry| entry.expect("a file").path()).collect();
    stories.sort();
    for story in &stories {
        let written = fs::read_to_string(story).expect("readable");
        let played = play(&written);
        if write {
            fs::write(story, &played).expect("writable");
        }
        assert!(
            write || written == played,
            "{}:\n--- written\n{written}\n--- played\n{played}",
            story.display()
        );
    }
    for promise in 1..=13 {
        let told = |path: &&std::path::PathBuf| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(&format!("c{promise:02}_")))
        };
        assert!(stories.iter().any(|path| told(&path)), "promise {promise} has no story");
    }
}

fn play(text: &str) -> String {
    let mut settings =
        ReflectorSettings { streaming: false, probe_period: None, ..ReflectorSettings::default() };
    let (mut machine, mut now) = (None, Duration::ZERO);
    let mut played = String::new();
    for line in text.lines() {
        if line.is_empty() || line.starts_with('#') || line.starts_with("settings:") {
            if let Some(choices) = line.strip_prefix("settings:") {
                choices.split_whitespace().for_each(|choice| choose(&mut settings, choice));
            }
            played += &format!("{line}\n");
            continue;
        }
        let Some(happens) = line.strip_prefix('>') else { continue };
        played += &format!("{line}\n");
        let machine = machine.get_or_insert_with(|| Machine::new(settings.clone(), 1));
        let mut words: Vec<&str> = happens.split_whitespace().collect();
        if let Some(later) = words.first().and_then(|word| word.strip_prefix('+')) {
            now += duration(later);
            words.remove(0);
        }
        let input = match words[..] {
            ["wait"] => {
                let deadline = machine.deadline().expect("the machine waits for something");
                played += &format!("  ({:.3} s later)\n", deadline.saturating_sub(now).as_secs_f64());
                now = now.max(deadline);
                Input::Timer
            }
            _ => input(&words),
        };
        for action in machine.handle(now, input) {
            played += &format!("  {}\n", show(&action));
        }
    }
    played
}

fn choose(settings: &mut ReflectorSettings, choice: &str) {
    let (name, value) = choice.split_once('=').unwrap_or((choice, ""));
    match name {
        "streaming" => settings.streaming = true,
        "probe" => settings.probe_period = Some(duration(value)),
        "page-size" => settings.page_size = Some(value.parse().expect("a number")),
        "watch-timeout" => settings.watch_timeout = duration(value),
        "internal-errors" => settings.internal_error_retry = duration(value),
        "jitter" => settings.backoff.jitter = value.parse().expect("a number"),
        _ => panic!("no such setting: {choice}"),
    }
}

fn input(words: &[&str]) -> Input {
    let value = |name: &str| {
        words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
    };
    let page = || {
        let end = PageEnd {
            version: value("rv").unwrap_or_default().into(),
            continue_token: value("continue"),
            remaining: value("remaining").map(|count| count.parse().expect("a number")),
        };
        (end, value("objects").map_or(0, |count| count.parse().expect("a number")))
    };
    let version = |text: &str| ResourceVersion::from(text);
    match words {
        ["start"] => Input::Start,
        ["page", ..] => {
            let (end, objects) = page();
            Input::Page { end, objects }
        }
        ["list", "failed", error @ ..] => Input::ListFailed(failure(error)),
        ["list", "goes", "on"] => Input::ListGoesOn,
        ["opened"] => Input::WatchOpened,
        ["refused", error @ ..] => Input::WatchRefused(failure(error)),
        ["added", rv] => Input::Event(WatchChange::Added, version(rv)),
        ["modified", rv] => Input::Event(WatchChange::Modified, version(rv)),
        ["deleted", rv] => Input::Event(WatchChange::Deleted, version(rv)),
        ["bookmark", rv] => Input::Bookmark(version(rv), false),
        ["bookmark", rv, "end"] => Input::Bookmark(version(rv), true),
        ["error", status @ ..] => match failure(status) {
            SourceError::Status(status) => Input::ErrorEvent(*status),
            other => panic!("not a status: {other}"),
        },
        ["foreign", what @ ..] => Input::Foreign(what.join(" ")),
        ["panicked"] => Input::Panicked("as the scenario says".to_owned()),
        ["closed"] => Input::WatchClosed(None),
        ["closed", error @ ..] => Input::WatchClosed(Some(failure(error))),
        ["probe", "failed", error @ ..] => Input::Probed(Err(failure(error))),
        ["probe", ..] => Input::Probed(Ok(page())),
        ["vouched", ago] => Input::Vouched(duration(ago)),
        _ => panic!("nothing like this happens: {words:?}"),
    }
}

fn failure(words: &[&str]) -> SourceError {
    let text = || "as the scenario says".to_owned();
    let too_large = "Too large resource version: 20, current: 10";
    let status = match words {
        ["refused"] => return SourceError::Refused(text()),
        ["unreachable"] => return SourceError::Unreachable(text()),
        ["broken"] => return SourceError::Broken(text()),
        ["malformed"] => return SourceError::Malformed(text()),
        ["expired"] => Status::expired(text()),
        ["gone"] => Status::gone(text()),
        ["invalid"] => Status::failure(Reason::Invalid, text()),
        ["too-large", "by", "cause"] => Status::failure(Reason::Timeout, "try again")
            .with_causes([StatusCause::new("ResourceVersionTooLarge", "", too_large)]),
        ["too-large", "by", "reason"] => Status::failure(Reason::Timeout, too_large),
        ["too-large", "by", "message"] => {
            let mut status = Status::failure(Reason::Timeout, too_large);
            status.reason = Reason::Unknown;
            status
        }
        ["429", "after", seconds] => Status::too_many_requests(text(), seconds.parse().expect("seconds")),
        ["429"] => Status::failure(Reason::TooManyRequests, text()),
        ["500"] => Status::internal_error(text()),
        ["503"] => Status::service_unavailable(text()),
        ["401"] => Status::unauthorized(text()),
        ["403"] => Status::forbidden("pods", "", "", text()),
        ["404"] => Status::failure(Reason::NotFound, text()),
        _ => panic!("no such failure: {words:?}"),
    };
    status.into()
}

fn duration(text: &str) -> Duration {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_alphabetic()).expect("a unit"));
    let number: f64 = number.parse().expect("a number");
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "min" => 60.0,
        _ => panic!("no such unit: {unit}"),
    };
    Duration::from_secs_f64(number * seconds)
}

fn show(action: &Action) -> String {
    match action {
        Action::List(options) => format!("list{}", show_options(options)),
        Action::Watch(options) => format!("watch{}", show_options(options)),
        Action::Probe { options, version_only: false } => format!("probe{}", show_options(options)),
        Action::Probe { options, version_only: true } => {
            format!("probe{}, unless somebody vouches", show_options(options))
        }
        Action::CancelList => "cancel the list".to_owned(),
        Action::CloseWatch => "close the watch".to_owned(),
        Action::Collect => "collect".to_owned(),
        Action::Discard => "discard".to_owned(),
        Action::Replace(version) => format!("replace rv={version}"),
        Action::Apply => "apply".to_owned(),
        Action::ApplyLate(reached) => format!("apply late, after rv={reached}"),
        Action::Bookmark(version) => format!("bookmark rv={version}"),
        Action::Skip(why) => format!("skip: {why}"),
        Action::Report(problem, remedy) => format!("report: {problem}; {remedy}"),
    }
}

fn show_options(options: &ListOptions) -> String {
    let mut text = match (&options.continue_token, options.resource_version.to_string()) {
        (Some(token), version) if version.is_empty() => format!(" continue={token}"),
        (None, version) => {
            format!(" rv={version:?}").replace('"', if version.is_empty() { "\"" } else { "" })
        }
        (Some(_), _) => panic!("a version beside a continue token: {options:?}"),
    };
    if let Some(matching) = options.resource_version_match {
        text += &format!(" match={}", matching.as_str());
    }
    if let Some(limit) = options.limit {
        text += &format!(" limit={limit}");
    }
    if options.send_initial_events {
        text += " initial-events";
    }
    if options.allow_watch_bookmarks {
        text += " bookmarks";
    }
    if let Some(timeout) = options.timeout {
        text += &format!(" timeout={}s", timeout.as_secs());
    }
    text
}
