//! The rules, one at a time and with nonsense from all sides.

use std::time::Duration;

use informer::leader::{
    ElectionProblem, Lost,
    machine::{Action, Answer, Input, Machine, Record, Settings, Stored, Term},
};
use informer_testing::histories;
use proptest::prelude::*;

fn settings() -> Settings {
    let [lease_duration, renew_deadline, retry_period] = [15, 10, 2].map(Duration::from_secs);
    Settings { identity: "ann".to_owned(), lease_duration, renew_deadline, retry_period, release: true }
}

/// A machine and its clock, in milliseconds.
struct Play(Machine, u64);

impl Play {
    fn begin() -> Self {
        let mut play = Self(Machine::new(settings(), 1), 0);
        assert_eq!(play.hear(Input::Start), [Action::Get]);
        play
    }

    fn hear(&mut self, input: Input) -> Vec<Action> {
        self.0.handle(Duration::from_millis(self.1), 1_000, input)
    }

    fn answer(&mut self, answer: Answer) -> Vec<Action> {
        self.hear(Input::Answer(answer))
    }

    /// Lets the time pass until the machine wants to do something.
    fn on_time(&mut self) -> Vec<Action> {
        let due = self.0.deadline().expect("it goes on");
        self.1 = due.as_millis() as u64 + 1;
        self.hear(Input::Timer)
    }

    /// Begins, and leads.
    fn leading() -> Self {
        let mut play = Self::begin();
        let actions = play.answer(Answer::Absent);
        let [Action::Create(record)] = &actions[..] else { panic!("{actions:?}") };
        let actions = play.answer(stored(record, 1));
        assert!(matches!(actions[..], [.., Action::Gained(Term { token: 1, .. })]), "{actions:?}");
        play
    }

    /// The record of a renewal that is asked for now.
    fn renewal(&mut self) -> Record {
        let actions = self.on_time();
        let [Action::Update(record, _)] = &actions[..] else { panic!("{actions:?}") };
        record.clone()
    }
}

fn stored(record: &Record, version: u64) -> Answer {
    stored_as("the first", record, version)
}

fn stored_as(uid: &str, record: &Record, version: u64) -> Answer {
    Answer::Lease(Stored { record: record.clone(), uid: uid.to_owned(), version })
}

fn held_by(holder: &str, token: i32) -> Record {
    Record {
        holder: Some(holder.to_owned()),
        transitions: Some(token),
        duration_seconds: Some(15),
        ..Record::default()
    }
}

#[test]
fn a_grant_that_comes_after_the_deadline_is_no_term() {
    let mut play = Play::begin();
    let actions = play.answer(Answer::Absent);
    let [Action::Create(record)] = &actions[..] else { panic!("{actions:?}") };
    play.1 += 10_000;
    assert_eq!(play.answer(stored(record, 1)), [Action::NewLeader("ann".to_owned())]);
    // The Lease is this process's own, so it need not wait for anybody. The term is another one all the same.
    assert_eq!(play.on_time(), [Action::Get]);
    let actions = play.answer(stored(record, 1));
    assert!(matches!(&actions[..], [Action::Update(next, _)] if next.transitions == Some(2)), "{actions:?}");
}

#[test]
fn a_renewal_that_the_server_did_not_write_does_not_count() {
    let mut play = Play::leading();
    let actions = play.on_time();
    let [Action::Update(record, _)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(
        play.answer(stored(record, 1)),
        [Action::Report(ElectionProblem::NotWritten)],
        "the version did not change"
    );
    assert_eq!(play.on_time(), [Action::Get]);
    let actions = play.answer(stored(&held_by("bob", 1), 2));
    let taken = Lost::Taken { by: Some("bob".to_owned()) };
    assert_eq!(actions, [Action::NewLeader("bob".to_owned()), Action::Lost(taken)]);
}

#[test]
fn a_server_that_changes_what_is_written_is_not_asked_without_a_pause() {
    let mut play = Play::begin();
    let actions = play.answer(Answer::Absent);
    assert!(matches!(actions[..], [Action::Create(_)]), "{actions:?}");
    assert_eq!(play.answer(stored(&Record::default(), 1)), [Action::Report(ElectionProblem::NotWritten)]);
    assert!(play.0.deadline() >= Some(Duration::from_secs(2)));
}

#[test]
fn a_creation_that_is_carried_out_after_others_led_is_not_taken_for_ones_own() {
    let mut play = Play::begin();
    let actions = play.answer(Answer::Absent);
    let [Action::Create(record)] = &actions[..] else { panic!("{actions:?}") };
    assert!(matches!(play.on_time()[..], [Action::Abandon, Action::Report(_)]));
    // Somebody else leads, the Lease is deleted, and then the creation arrives.
    play.on_time();
    play.answer(stored(&held_by("bob", 1), 1));
    play.on_time();
    let actions = play.answer(stored(record, 2));
    assert_eq!(actions, [Action::NewLeader("ann".to_owned()), Action::Recovered], "bob may lead for a while");
}

#[test]
fn a_conflict_is_looked_into_at_once_but_only_once() {
    let mut play = Play::leading();
    let actions = play.on_time();
    let [Action::Update(record, _)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(play.answer(Answer::Conflict), [Action::Get]);
    let own = Record { renewed: record.renewed, ..record.clone() };
    assert!(matches!(play.answer(stored(&own, 5))[..], [Action::Update(..)]));
    assert_eq!(play.answer(Answer::Conflict), []);
    assert_eq!(play.on_time(), [Action::Get], "after the retry period");
}

#[test]
fn a_leader_that_resigns_while_it_renews_gives_the_lease_back_after_the_answer() {
    let mut play = Play::leading();
    let actions = play.on_time();
    let [Action::Update(record, _)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(play.hear(Input::Resign), [Action::Lost(Lost::Resigned)]);
    let actions = play.answer(stored(record, 2));
    let [Action::Update(empty, version)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!((empty.holder(), empty.transitions, *version), (None, Some(1), 2));
    assert_eq!(play.answer(stored(empty, 3)), [Action::Done]);
    assert_eq!(play.0.deadline(), None);
}

#[test]
fn c35_two_who_make_the_lease_one_after_the_other_have_different_tokens_and_the_later_the_greater() {
    // Somebody deletes the Lease of the first one, and the second one has never seen it.
    let token = |version| {
        let mut play = Play::begin();
        let actions = play.answer(Answer::Absent);
        let [Action::Create(record)] = &actions[..] else { panic!("{actions:?}") };
        assert_eq!(record.transitions, Some(1), "people read how often this Lease was taken");
        let actions = play.answer(stored(record, version));
        let Some(Action::Gained(term)) = actions.last() else { panic!("{actions:?}") };
        term.token
    };
    assert!(token(40) < token(43));
}

#[test]
fn c35_a_term_keeps_its_token_when_it_is_renewed() {
    let mut play = Play::leading();
    for version in 2..10 {
        let renewed = play.renewal();
        let actions = play.answer(stored(&renewed, version));
        assert!(matches!(actions[..], [.., Action::Renewed(Term { token: 1, .. })]), "{actions:?}");
    }
}

#[test]
fn c35_a_leader_ends_its_term_at_once_when_its_lease_is_gone_or_another_one_that_says_the_same() {
    let mut play = Play::leading();
    play.on_time();
    assert_eq!(play.answer(Answer::Absent), [Action::Lost(Lost::Deleted)]);

    // Brought back from a copy: whoever led in between is not to be seen.
    let mut play = Play::leading();
    let renewed = play.renewal();
    assert_eq!(play.answer(Answer::Conflict), [Action::Get]);
    let actions = play.answer(stored_as("the second", &renewed, 9));
    assert_eq!(actions, [Action::Lost(Lost::Replaced)]);
    assert_eq!(play.on_time(), [Action::Get]);
    let actions = play.answer(stored_as("the second", &renewed, 9));
    assert_eq!(actions, [Action::Recovered], "it is waited for as if it were somebody else's");
}

#[test]
fn c35_a_leader_whose_server_went_back_in_time_takes_a_token_of_the_present() {
    // Otherwise it would mark objects with a number that those after it do not reach for long.
    let mut play = Play::begin();
    let actions = play.answer(Answer::Absent);
    let [Action::Create(record)] = &actions[..] else { panic!("{actions:?}") };
    let actions = play.answer(stored(record, 1_000));
    assert!(matches!(actions[..], [.., Action::Gained(Term { token: 1_000, .. })]), "{actions:?}");
    play.on_time();
    assert_eq!(play.answer(Answer::Conflict), [Action::Get]);
    assert_eq!(play.answer(stored(record, 600)), [Action::Lost(Lost::Replaced)]);
    assert_eq!(play.on_time(), [Action::Get]);
    let actions = play.answer(stored(record, 600));
    let [Action::Update(record, 600)] = &actions[..] else { panic!("{actions:?}") };
    let actions = play.answer(stored(record, 601));
    assert!(matches!(actions[..], [.., Action::Gained(Term { token: 601, .. })]), "{actions:?}");
}

#[test]
fn c35_a_claim_that_somebody_was_faster_than_is_not_ones_own_however_their_lease_counts() {
    let mut play = Play::begin();
    play.answer(stored(&held_by("bob", 7), 5));
    play.on_time();
    play.answer(Answer::Absent);
    // It waits for bob, asks for a Lease with the number 8, and hears nothing.
    let record = loop {
        match &play.on_time()[..] {
            [Action::Get] => match &play.answer(Answer::Absent)[..] {
                [] => {}
                [Action::Create(record)] => break record.clone(),
                actions => panic!("{actions:?}"),
            },
            actions => panic!("{actions:?}"),
        }
    };
    assert_eq!(record.transitions, Some(8));
    assert!(matches!(play.on_time()[..], [Action::Abandon, Action::Report(_)]));
    // Eve, who was just started, makes one that begins with 1; it is deleted, and then the creation arrives.
    play.on_time();
    play.answer(stored_as("eve's", &held_by("eve", 1), 20));
    play.on_time();
    let actions = play.answer(stored_as("ann's", &record, 23));
    assert_eq!(actions, [Action::NewLeader("ann".to_owned()), Action::Recovered], "eve may lead for a while");
}

fn records() -> impl Strategy<Value = Record> {
    let holder = prop_oneof![Just(None), Just(Some("")), Just(Some("ann")), Just(Some("bob"))];
    let number = || prop_oneof![Just(None), any::<i32>().prop_map(Some), (-2..20).prop_map(Some)];
    let time = || prop_oneof![Just(None), any::<i64>().prop_map(Some), Just(Some(1_000))];
    (holder, number(), number(), time(), time()).prop_map(
        |(holder, duration_seconds, transitions, acquired, renewed)| Record {
            holder: holder.map(str::to_owned),
            duration_seconds,
            transitions,
            acquired,
            renewed,
        },
    )
}

/// What an input is, and what of the last write is in it.
#[derive(Debug, Clone)]
enum Step {
    Input(Input),
    /// The server answers with what it was last asked to write.
    Written(u8),
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let lease = (records(), 0..4u8).prop_map(|(record, version)| stored(&record, version.into()));
    let failed = Just(Answer::Failed(ElectionProblem::NoAnswer(Duration::ZERO)));
    let answer = prop_oneof![2 => lease, 1 => Just(Answer::Absent), 1 => Just(Answer::Conflict), 1 => failed];
    let step = prop_oneof![
        1 => Just(Step::Input(Input::Start)),
        6 => Just(Step::Input(Input::Timer)),
        6 => (0..9u8).prop_map(Step::Written),
        6 => answer.prop_map(|answer| Step::Input(Input::Answer(answer))),
        1 => Just(Step::Input(Input::Resign)),
    ];
    let later = prop_oneof![8 => 0..3_000u64, 2 => 0..40_000u64, 1 => Just(u64::MAX / 4)];
    proptest::collection::vec((later, step), 0..60)
}

#[test]
fn nothing_that_a_server_says_makes_the_rules_panic_or_contradict_themselves() {
    histories(&steps(), |steps| {
        let mut machine = Machine::new(settings(), 3);
        let (mut now, mut under_way, mut term, mut done) = (0u64, false, None, false);
        let mut written = Record::default();
        for (later, step) in steps {
            now = now.saturating_add(later);
            let input = match step {
                Step::Input(input) => input,
                Step::Written(version) => Input::Answer(stored(&written, version.into())),
            };
            let timer = input == Input::Timer;
            if let Input::Answer(_) = input {
                if !under_way {
                    continue;
                }
                under_way = false;
            }
            for action in machine.handle(Duration::from_millis(now), now as i64, input) {
                assert!(!done, "{action:?} after the end");
                match action {
                    Action::Get | Action::Create(_) | Action::Update(..) => {
                        assert!(!std::mem::replace(&mut under_way, true), "two requests at once");
                        if let Action::Create(record) | Action::Update(record, _) = action {
                            written = record;
                        }
                    }
                    Action::Abandon => under_way = false,
                    Action::Gained(Term { token, .. }) => assert!(term.replace(token).is_none()),
                    Action::Renewed(renewed) => assert_eq!(term, Some(renewed.token)),
                    Action::Lost(_) => assert!(term.take().is_some()),
                    Action::Done => done = true,
                    Action::NewLeader(_) | Action::Report(_) | Action::Recovered => {}
                }
            }
            let due = machine.deadline();
            assert!(!done || due.is_none());
            assert!(!timer || due.is_none_or(|due| due > Duration::from_millis(now)), "it spins");
        }
    });
}
