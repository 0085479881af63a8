//! The course of a life: who runs, what goes wrong, and how everything has to be in the end.

use std::{sync::Arc, time::Duration};

use informer::model::ObjectKey;
use informer_apiserver::{Fault, Rule, Verb};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{
    process::Process,
    program::Temper,
    way::Weather,
    world::{Counts, World},
};

/// In the end everything is right within this time: failures that were delay it.
const PATIENCE: Duration = Duration::from_secs(240);
const KINDS: [&str; 3] = ["widgets", "configmaps", "secrets"];

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A place for a process.
#[derive(Default)]
struct Seat {
    process: Option<Process>,
    /// When the next one begins.
    next: Duration,
    began: u64,
}

pub(crate) struct Course {
    world: Arc<World>,
    chance: Pcg64Mcg,
    seats: Vec<Seat>,
    weather: Weather,
    collected: Duration,
    seed: u64,
    /// Nobody begins any more.
    ending: bool,
}

impl Course {
    pub(crate) fn new(seed: u64, world: &Arc<World>) -> Self {
        let mut chance = Pcg64Mcg::seed_from_u64(seed);
        let calm = chance.random_bool(0.12);
        let some = |chance: &mut Pcg64Mcg, most: f64| match chance.random_bool(0.6) {
            true => chance.random_range(0.0..most),
            false => 0.0,
        };
        let (slow, behind) = (millis(chance.random_range(0..30)), millis(chance.random_range(0..900)));
        let mut weather = Weather { slow, behind, ..Weather::default() };
        if !calm {
            weather.refused = some(&mut chance, 0.15);
            weather.busy = some(&mut chance, 0.15);
            weather.lost = some(&mut chance, 0.25);
            weather.late = some(&mut chance, 0.2);
            weather.later = millis(chance.random_range(100..9_000));
            weather.behind = millis(chance.random_range(0..4_000));
        }
        let seats = (0..chance.random_range(1..=3)).map(|_| Seat::default()).collect();
        {
            let mut state = world.state();
            (state.calm, state.troubled) = (calm, true);
            state.lease_goes = !calm && chance.random_bool(0.25);
        }
        Self {
            world: Arc::clone(world),
            chance,
            seats,
            weather,
            collected: Duration::ZERO,
            seed,
            ending: false,
        }
    }

    pub(crate) fn play(mut self) -> Counts {
        match self.world.is_calm() {
            true => self.be_calm(),
            false => self.have_trouble(),
        }
        self.converge();
        self.end()
    }

    fn start(&mut self, seat: usize) {
        let number = self.seats[seat].began;
        self.seats[seat].began += 1;
        // Some keep their name, as pods of a stateful set do.
        let identity = match self.chance.random_bool(0.5) {
            true => format!("p{seat}"),
            false => format!("p{seat}-{number}"),
        };
        let temper = Temper {
            seed: self.chance.random(),
            identity,
            workers: self.chance.random_range(1..4),
            slow: millis([0, 50, 400, 1_500][self.chance.random_range(0..4)]),
            again: self.chance.random_range(0.0..0.3),
        };
        self.world.tell(format!("{} starts", temper.identity));
        let process = Process::start(&self.world, temper, self.chance.random_range(0.92..1.08));
        process.way.set_weather(self.weather);
        let mut state = self.world.state();
        state.lives.retain(|life| Arc::strong_count(life) > 1);
        state.lives.push(Arc::clone(&process.life));
        drop(state);
        self.seats[seat].process = Some(process);
    }

    /// Lets time pass for everybody.
    fn pass(&mut self, slice: Duration) {
        self.world.pass(slice);
        let now = self.world.now();
        self.deliver(now);
        let first = self.chance.random_range(0..self.seats.len());
        for nth in 0..self.seats.len() {
            let seat = (first + nth) % self.seats.len();
            let is_due = self.seats[seat].next <= now;
            match &mut self.seats[seat].process {
                Some(process) if process.paused.is_some_and(|until| until > now) => {}
                Some(process) => {
                    if process.paused.is_some() {
                        // It wakes up where it was, before this time has passed.
                        process.resume(now - slice);
                        self.world.tell(format!("{} wakes up", process.life.identity));
                    }
                    process.run(now);
                }
                None if is_due && !self.ending => self.start(seat),
                None => {}
            }
        }
        self.leave_those_that_ended();
        if now >= self.collected + Duration::from_secs(3) {
            self.collected = now;
            self.world.collect_garbage();
        }
        if let Some(wrong) = self.world.first_wrong() {
            panic!("{wrong}");
        }
    }

    /// What is on its way arrives.
    fn deliver(&mut self, now: Duration) {
        loop {
            let mut state = self.world.state();
            let due = state.wire.iter().enumerate().filter(|(_, flight)| flight.due <= now);
            let first = due.min_by_key(|(_, flight)| flight.due).map(|(nth, _)| nth);
            let Some(first) = first else { return };
            let flight = state.wire.remove(first);
            drop(state);
            let answer = self.world.write(flight.parts, flight.body, Some(&flight.sender));
            // Who has sent it may be gone.
            let _ = flight.answer.send(answer);
        }
    }

    fn have_trouble(&mut self) {
        let end = self.world.now() + Duration::from_secs(self.chance.random_range(20..50));
        let kills = self.chance.random_range(0..4);
        let pauses = self.chance.random_range(0..4);
        let users = self.chance.random_range(5..12);
        if self.chance.random_bool(0.2) {
            let fault = Rule::new(Fault::DropBookmark).verb(Verb::Watch).probability(0.7);
            self.world.server.faults().add(fault);
        }
        while self.world.now() < end {
            // Short ones and long ones.
            let slice = 1.2_f64.powi(self.chance.random_range(4..28));
            self.pass(Duration::from_secs_f64(slice / 1000.0));
            if !self.chance.random_bool((slice / 450.0).min(1.0)) {
                continue;
            }
            let seat = self.chance.random_range(0..self.seats.len());
            match self.chance.random_range(0..30) {
                at if at < kills => self.kill(seat),
                at if at < kills + pauses => self.pause(seat),
                at if at < kills + pauses + users => self.world.use_it(&mut self.chance),
                at => self.misbehave(at, seat),
            }
        }
    }

    fn misbehave(&mut self, what: i32, seat: usize) {
        let kind = KINDS[self.chance.random_range(0..KINDS.len())];
        let Some(process) = &self.seats[seat].process else { return };
        let (way, who) = (process.way.clone(), &process.life.identity);
        match what % 12 {
            0 => {
                self.world.tell(format!("{who}: watches of {kind} hang"));
                way.hold(vec![kind]);
            }
            1 => {
                self.world.tell(format!("{who}: all watches hang"));
                way.hold(KINDS.to_vec());
            }
            2..=5 => {
                way.hold(Vec::new());
                way.cut_off(false);
            }
            6 => way.break_watches(),
            7 => {
                self.world.tell("all versions expire");
                self.world.server.compact();
                way.break_watches();
            }
            8 => {
                self.world.tell(format!("{who} is cut off"));
                way.cut_off(true);
                way.hold(KINDS.to_vec());
            }
            9 => {
                if let Some(process) = &self.seats[seat].process {
                    self.world.tell(format!("{who} is told to stop"));
                    process.stop.cancel();
                }
            }
            _ if self.world.state().lease_goes => {
                let boss = ObjectKey::new(Some("default"), "boss").unwrap();
                if self.world.server.discard("coordination.k8s.io", "leases", &boss) {
                    self.world.tell("the Lease is deleted");
                    let now = self.world.now();
                    self.world.state().lease_deleted = Some(now);
                }
            }
            _ => {}
        }
    }

    /// Others begin in the place of those that have ended, of which nothing is left.
    fn leave_those_that_ended(&mut self) {
        let now = self.world.now();
        for seat in &mut self.seats {
            let Some(process) = seat.process.take_if(|process| process.has_ended()) else { continue };
            process.run(now + millis(2));
            let left = (process.tasks(), process.way.open_watches());
            assert_eq!(left, (0, 0), "tasks and watches of {} are left", process.life.identity);
        }
    }

    /// Chooses the one that leads more often than others, and waits a little for it to be at work.
    fn catch(&mut self, seat: usize) -> usize {
        let now = self.world.now();
        let leads = |seat: &Seat| {
            let process = seat.process.as_ref().filter(|process| process.paused.is_none());
            process.is_some_and(|process| {
                process.life.terms.lock().unwrap().at(process.life.locally(now)).is_some()
            })
        };
        let Some(leader) = self.seats.iter().position(leads).filter(|_| self.chance.random_bool(0.7)) else {
            return seat;
        };
        for _ in 0..30 {
            let is_at_work = |process: &Process| {
                process.life.queue.lock().unwrap().as_ref().is_some_and(|queue| queue.stats().processing > 0)
            };
            if self.seats[leader].process.as_ref().is_none_or(is_at_work) {
                break;
            }
            self.pass(millis(20));
        }
        leader
    }

    fn kill(&mut self, seat: usize) {
        let seat = self.catch(seat);
        let Some(process) = self.seats[seat].process.take() else { return };
        // Anywhere, also between two tasks.
        process.step(self.chance.random_range(0..30));
        self.world.tell(format!("{} is killed", process.life.identity));
        process.kill();
        self.world.state().counts.kills += 1;
        self.seats[seat].next = self.world.now() + millis(self.chance.random_range(0..6_000));
    }

    fn pause(&mut self, seat: usize) {
        let seat = self.catch(seat);
        let tasks = self.chance.random_range(0..30);
        let until = self.world.now() + millis(self.chance.random_range(100..14_000));
        let Some(process) = self.seats[seat].process.as_mut().filter(|process| process.paused.is_none())
        else {
            return;
        };
        process.step(tasks);
        process.paused = Some(until);
        self.world.tell(format!("{} stands still until {until:?}", process.life.identity));
        self.world.state().counts.pauses += 1;
    }

    /// Users who wait until all is done, and nothing that goes wrong.
    fn be_calm(&mut self) {
        for _ in 0..self.chance.random_range(4..10) {
            self.settle();
            self.world.use_it(&mut self.chance);
        }
    }

    /// Waits until everything is as it should be, and nothing is left to do.
    fn settle(&mut self) {
        let patience = self.world.now() + PATIENCE;
        let mut quiet = 0;
        loop {
            for _ in 0..10 {
                self.pass(millis(100));
            }
            let unsettled = self.unsettled();
            quiet = if unsettled.is_empty() { quiet + 1 } else { 0 };
            if quiet > 2 {
                return;
            }
            assert!(self.world.now() < patience, "{unsettled:#?}");
        }
    }

    fn unsettled(&self) -> Vec<String> {
        let mut wrong = self.world.unsettled();
        let now = self.world.now();
        let mut leaders = 0;
        for process in self.seats.iter().filter_map(|seat| seat.process.as_ref()) {
            let leads = process.life.terms.lock().unwrap().at(process.life.locally(now)).is_some();
            leaders += usize::from(leads);
            if let Some(queue) = process.life.queue.lock().unwrap().as_ref().filter(|_| leads) {
                let stats = queue.stats();
                if stats.depth + stats.delayed + stats.processing > 0 {
                    wrong.push(format!("{}: {stats:?}", process.life.identity));
                }
            }
        }
        if leaders != 1 {
            wrong.push(format!("{leaders} leaders at {now:?}"));
        }
        if !self.world.state().wire.is_empty() {
            wrong.push("writes are on their way".to_owned());
        }
        wrong
    }

    /// Everything goes well from now on, and is right after some time.
    fn converge(&mut self) {
        self.world.tell("all is well from now on");
        self.world.state().troubled = false;
        self.world.server.faults().clear();
        self.weather = Weather { slow: self.weather.slow, behind: millis(20), ..Weather::default() };
        let now = self.world.now();
        for seat in &mut self.seats {
            seat.next = now;
            if let Some(process) = &mut seat.process {
                process.paused = process.paused.map(|_| now);
                process.way.set_weather(self.weather);
                process.way.cut_off(false);
                if !self.world.is_calm() {
                    // What hangs is noticed after minutes: here, now.
                    process.way.break_watches();
                }
                process.way.hold(Vec::new());
            }
        }
        self.world.release();
        self.settle();
        if self.chance.random_bool(0.3) {
            self.world.delete_everything();
            self.settle();
        }
    }

    /// Everybody stops, and nothing is left.
    fn end(mut self) -> Counts {
        self.ending = true;
        for process in self.seats.iter().filter_map(|seat| seat.process.as_ref()) {
            process.stop.cancel();
        }
        for _ in 0..300 {
            self.pass(millis(100));
            if self.seats.iter().all(|seat| seat.process.is_none()) {
                break;
            }
        }
        assert!(self.seats.iter().all(|seat| seat.process.is_none()), "somebody does not stop");
        let boss = ObjectKey::new(Some("default"), "boss").unwrap();
        let lease = self.world.get("leases", &boss).unwrap_or_default();
        assert!(lease["spec"]["holderIdentity"].as_str().is_none_or(str::is_empty), "{lease}");
        let counts = self.world.state().counts;
        if self.world.is_calm() {
            assert_eq!((counts.refused, counts.collected), (0, 0), "seed {}: {counts:?}", self.seed);
        }
        counts
    }
}
