//! An election with everything that can go wrong, made by a seed, and what must hold at every moment of it.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, HashMap},
    fmt::Display,
    time::Duration,
};

use informer::leader::{
    ElectionProblem,
    machine::{Action, Answer, Input, Settings},
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use super::cast::{LeaseTerm, Life, Moment, Object, Process, Server};

const SECOND: u64 = 1_000_000;
const TIMES: [Times; 4] = [
    Times::new(15_000, 10_000, 2_000),
    Times::new(6_000, 4_000, 1_000),
    Times::new(10_000, 9_000, 1_500),
    Times::new(40_000, 12_000, 900),
];

#[derive(Debug, Clone, Copy)]
struct Times {
    lease: Duration,
    renew: Duration,
    retry: Duration,
}

impl Times {
    const fn new(lease: u64, renew: u64, retry: u64) -> Self {
        let [lease, renew, retry] =
            [Duration::from_millis(lease), Duration::from_millis(renew), Duration::from_millis(retry)];
        Self { lease, renew, retry }
    }
}

pub(crate) struct World {
    rng: Pcg32,
    now: Moment,
    /// What happened, for a person; only if somebody wants to read it.
    story: Option<Vec<String>>,
    /// What the processes choose their times from.
    times: Vec<Times>,
    server: Server,
    processes: Vec<Process>,
    /// What is on its way, by its time and then its number.
    events: BinaryHeap<Reverse<(Moment, u64)>>,
    under_way: HashMap<u64, Event>,
    numbers: u64,
    /// Until then no request arrives.
    outage_until: Moment,
    /// Nothing goes wrong any more.
    calm: bool,
    /// The tokens that terms began with.
    tokens: BTreeSet<u64>,
    /// The latest life of the Lease in which a term began.
    life: Life,
    /// Until then a leader of an earlier life may have a valid fence too: the Lease was deleted under it, and made anew by one that
    /// had not seen its term.
    excused_until: Moment,
    pub(crate) terms: u64,
    pub(crate) writes: u64,
    pub(crate) refused: u64,
}

enum Event {
    /// A request arrives at the server, from the process with this index, as its request of this number.
    Request {
        from: usize,
        request: u64,
        action: Action,
        /// The term that the process had last heard of when it sent this.
        seen: Option<LeaseTerm>,
    },
    Answer {
        to: usize,
        request: u64,
        answer: Answer,
    },
    /// A pause ends.
    Wake(usize),
    /// A leader begins a fenced write.
    Write(usize),
    /// The object is read for the fenced write of this number.
    Read {
        by: usize,
        write: u64,
        token: Option<u64>,
    },
    /// The process has the object.
    HasRead {
        by: usize,
        write: u64,
        token: Option<u64>,
        object: Object,
    },
    /// The server is to replace it.
    Replace {
        by: usize,
        write: u64,
        token: u64,
        object: Object,
    },
    /// Something goes wrong.
    Trouble,
}

impl World {
    pub(crate) fn new(seed: u64, told: bool) -> Self {
        let mut rng = Pcg32::seed_from_u64(seed);
        let mut times = TIMES.to_vec();
        if rng.random_bool(0.7) {
            times = vec![times[rng.random_range(0..times.len())]];
        }
        let mut world = Self {
            rng,
            now: 0,
            story: told.then(Vec::new),
            times,
            server: Server::default(),
            processes: Vec::new(),
            events: BinaryHeap::new(),
            under_way: HashMap::new(),
            numbers: 0,
            outage_until: 0,
            calm: false,
            tokens: BTreeSet::new(),
            life: 0,
            excused_until: 0,
            terms: 0,
            writes: 0,
            refused: 0,
        };
        for index in 0..world.rng.random_range(2..=4) {
            let process = world.process(index);
            world.processes.push(process);
        }
        for index in 0..world.processes.len() {
            world.act(index, Input::Start);
        }
        world.plan_trouble();
        world
    }

    /// Plays it: a time of trouble, and then a calm one in which somebody has to lead.
    pub(crate) fn play(&mut self) {
        let trouble = self.rng.random_range(20..200) * SECOND;
        self.run_until(trouble, |_| false);
        self.calm_down();
        let longest = |time: fn(&Times) -> Duration| self.times.iter().map(time).max().unwrap_or_default();
        let (lease, renew, retry) = (longest(|t| t.lease), longest(|t| t.renew), longest(|t| t.retry));
        // A request that hangs, a look, the lease duration and two waits of a candidate, on the slowest clock.
        let patience =
            (renew / 2 + lease + retry.mul_f64(2.2) * 3).mul_f64(self.drift()) + Duration::from_secs(1);
        let limit = self.now + patience.as_micros() as u64;
        // Who leads can write: an object of which the leader has too small a token would refuse it for ever.
        let leads = |world: &Self| {
            let fences = world.processes.iter().filter_map(|one| one.fence(world.now));
            fences.max().is_some_and(|token| token >= world.server.object.token)
        };
        self.run_until(limit, leads);
        assert!(leads(self), "nobody leads {patience:?} after all went well again");
    }

    pub(crate) fn told(self) -> Vec<String> {
        self.story.unwrap_or_default()
    }

    fn tell(&mut self, what: impl Display) {
        if let Some(story) = &mut self.story {
            story.push(format!("{:>12.6} {what}", self.now as f64 / SECOND as f64));
        }
    }

    // Processes

    /// By how much clocks may differ so that any two of them are within the bound.
    fn drift(&self) -> f64 {
        let bounds = self.times.iter().map(|times| times.lease.as_secs_f64() / times.renew.as_secs_f64());
        bounds.fold(4.0, f64::min).sqrt() * 0.9999
    }

    fn process(&mut self, index: usize) -> Process {
        let times = self.times[self.rng.random_range(0..self.times.len())];
        // Sometimes two have the same name, which should not be and does happen.
        let identity = if self.rng.random_bool(0.1) { "same".to_owned() } else { format!("p{index}") };
        let drift = self.drift();
        let rate = self.rng.random_range(1.0 / drift..drift);
        let release = self.rng.random_bool(0.8);
        let Times { lease: lease_duration, renew: renew_deadline, retry: retry_period } = times;
        let settings = Settings { identity, lease_duration, renew_deadline, retry_period, release };
        let name = format!("#{index} {}", settings.identity);
        self.tell(format_args!("{name} begins with {times:?}, its clock runs {rate:.3} times as fast"));
        let mut process = Process::new(name, settings, self.rng.random(), self.now, rate);
        process.set_wall_clock(self.now, self.rng.random_range(-10..10) * SECOND as i64);
        process
    }

    /// Lets a process take an input, now or when it is awake, and does what it says.
    fn act(&mut self, index: usize, input: Input) {
        let process = &mut self.processes[index];
        if process.paused_until.is_some() {
            process.waiting.push_back(input);
            return;
        }
        let actions = process.handle(self.now, input);
        for action in actions {
            self.perform(index, action);
        }
        self.check();
    }

    fn perform(&mut self, index: usize, action: Action) {
        match &action {
            Action::Recovered | Action::Report(_) => {}
            _ => {
                let name = self.processes[index].name.clone();
                self.tell(format_args!("{name}: {action:?}"));
            }
        }
        let process = &mut self.processes[index];
        match action {
            Action::Get | Action::Create(_) | Action::Update(..) => {
                let request = self.numbers;
                process.request = Some(request);
                let (seen, delay) = (process.seen, self.delay());
                self.plan(delay, Event::Request { from: index, request, action, seen });
            }
            Action::Abandon => process.request = None,
            Action::Gained(term) => {
                let life = process.seen.expect("the Lease that it leads by").life;
                process.term = Some((term, life));
                // Also of a term that begins late, in an earlier life of the Lease.
                let greater = self.tokens.last().is_none_or(|last| term.token > *last);
                assert_eq!(greater, life >= self.life, "term {} after {:?}", term.token, self.tokens.last());
                assert!(self.tokens.insert(term.token), "two terms have the token {}", term.token);
                (self.life, self.terms) = (self.life.max(life), self.terms + 1);
                self.plan_write(index);
            }
            Action::Renewed(term) => process.term = process.term.map(|(_, life)| (term, life)),
            // The work is dropped. What it has put into tasks of its own goes on.
            Action::Lost(_) => {
                process.term = None;
                process.writing.take_if(|write| !write.is_multiple_of(3));
            }
            Action::NewLeader(_) | Action::Report(_) | Action::Recovered | Action::Done => {}
        }
    }

    /// What must hold at every moment.
    fn check(&self) {
        let valid = |one: &Process| Some((one.name.clone(), one.fence(self.now)?, one.term?.1));
        let mut valid: Vec<_> = self.processes.iter().filter_map(valid).collect();
        if self.now < self.excused_until {
            valid.retain(|(.., life)| *life == self.life);
        }
        assert!(valid.len() <= 1, "two fences at once: {valid:?}");
        if let Some((name, token, _)) = valid.first() {
            assert_eq!(Some(token), self.tokens.last(), "{name} has a valid fence after a later term began");
        }
    }

    // Time

    fn plan(&mut self, after: u64, event: Event) {
        let number = self.numbers;
        self.numbers += 1;
        self.under_way.insert(number, event);
        self.events.push(Reverse((self.now + after, number)));
    }

    fn run_until(&mut self, limit: Moment, enough: impl Fn(&Self) -> bool) {
        while !enough(self) {
            let awake = |(index, one): (usize, &Process)| match one.paused_until {
                None => Some((one.deadline()?, index)),
                Some(_) => None,
            };
            let timer = self.processes.iter().enumerate().filter_map(awake).min();
            let event = self.events.peek().map(|Reverse((at, _))| *at);
            match (timer, event) {
                (Some((at, index)), event) if event.is_none_or(|event| at <= event) => {
                    if at > limit {
                        break;
                    }
                    self.now = self.now.max(at);
                    self.act(index, Input::Timer);
                    let spins = self.processes[index].deadline().is_some_and(|next| next <= self.now);
                    assert!(!spins, "{} wants to be called again at once", self.processes[index].name);
                }
                (_, Some(at)) => {
                    if at > limit {
                        break;
                    }
                    self.now = at;
                    if let Some(Reverse((_, number))) = self.events.pop()
                        && let Some(event) = self.under_way.remove(&number)
                    {
                        self.happen(event);
                    }
                }
                _ => break,
            }
            self.check();
        }
        if !enough(self) {
            self.now = self.now.max(limit);
        }
    }

    /// How long something is on its way: mostly moments; but a process may be stopped just before it sends.
    fn delay(&mut self) -> u64 {
        match self.rng.random_range(0..if self.calm { 80 } else { 100 }) {
            0..80 => self.rng.random_range(100..50_000),
            80..90 => self.rng.random_range(50_000..2 * SECOND),
            90..97 => self.rng.random_range(SECOND..15 * SECOND),
            _ => self.rng.random_range(10 * SECOND..90 * SECOND),
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Request { from, request, action, seen } => self.serve(from, request, &action, seen),
            Event::Answer { to, request, answer } => {
                let process = &mut self.processes[to];
                if process.request == Some(request) {
                    process.request = None;
                    self.act(to, Input::Answer(answer));
                }
            }
            Event::Wake(index) => self.wake(index),
            Event::Trouble => {
                self.trouble();
                self.plan_trouble();
            }
            Event::Write(by) => self.begin_write(by),
            Event::Read { by, write, token } => {
                let object = self.server.object;
                let delay = self.delay();
                self.plan(delay, Event::HasRead { by, write, token, object });
            }
            Event::HasRead { by, write, token, object } => self.go_on_writing(by, write, token, object),
            Event::Replace { by, write, token, object } => {
                let done = self.server.replace(object, token);
                self.writes += u64::from(done);
                self.refused += u64::from(!done);
                let process = &mut self.processes[by];
                if process.writing == Some(write) {
                    process.writing = None;
                }
                let name = process.name.clone();
                self.tell(format_args!("{name}: a write with token {token} is taken: {done}"));
            }
        }
    }

    fn serve(&mut self, from: usize, request: u64, action: &Action, seen: Option<LeaseTerm>) {
        let lost = self.now < self.outage_until || (!self.calm && self.rng.random_bool(0.05));
        let answer = if lost { None } else { Some(self.server.answer(action)) };
        let made = matches!((action, &answer), (Action::Create(_), Some(Answer::Lease(_))));
        if let Some((term, at)) = self.server.deleted.filter(|(term, _)| made && seen != Some(*term)) {
            let longest = self.times.iter().map(|times| times.renew).max().unwrap_or_default();
            self.excused_until = at + longest.mul_f64(self.drift()).as_micros() as u64;
            self.tell(format_args!("the Lease is made by one who has not seen {term:?}"));
        }
        let unheard = !self.calm && self.rng.random_bool(0.05);
        let answer = match answer.filter(|_| !unheard) {
            Some(answer) => answer,
            // Nothing is heard, or an error that says nothing about what was done.
            None if self.rng.random() => return,
            None => Answer::Failed(ElectionProblem::NoAnswer(Duration::ZERO)),
        };
        let delay = self.delay();
        self.plan(delay, Event::Answer { to: from, request, answer });
    }

    // Fenced writes

    fn plan_write(&mut self, by: usize) {
        let after = self.rng.random_range(1_000..3 * SECOND);
        self.plan(after, Event::Write(by));
    }

    fn begin_write(&mut self, by: usize) {
        let (now, write) = (self.now, self.numbers);
        let process = &mut self.processes[by];
        if process.term.is_none() {
            return;
        }
        if process.paused_until.is_none() && process.writing.is_none() {
            process.writing = Some(write);
            // The fence may be asked for before the object is read, or after.
            let early = process.fence(now).filter(|_| write.is_multiple_of(2));
            let delay = self.delay();
            self.plan(delay, Event::Read { by, write, token: early });
        }
        self.plan_write(by);
    }

    fn go_on_writing(&mut self, by: usize, write: u64, token: Option<u64>, object: Object) {
        let process = &mut self.processes[by];
        if process.writing != Some(write) {
            return;
        }
        if let Some(until) = process.paused_until {
            let after = until - self.now + 1;
            return self.plan(after, Event::HasRead { by, write, token, object });
        }
        let Some(token) = token.or_else(|| process.fence(self.now)) else {
            process.writing = None;
            return;
        };
        if object.token > token {
            process.writing = None;
            self.refused += 1;
            return;
        }
        // From here on nothing of the process can stop the write any more.
        let delay = self.delay();
        self.plan(delay, Event::Replace { by, write, token, object });
    }

    // What goes wrong

    fn plan_trouble(&mut self) {
        let after = self.rng.random_range(SECOND / 10..6 * SECOND);
        self.plan(after, Event::Trouble);
    }

    fn trouble(&mut self) {
        if self.calm {
            return;
        }
        let index = self.rng.random_range(0..self.processes.len());
        match self.rng.random_range(0..10) {
            0..4 => self.pause(index),
            4 => {
                let jump = self.rng.random_range(-86_400..86_400) * SECOND as i64;
                self.processes[index].set_wall_clock(self.now, jump);
            }
            5 => {
                self.outage_until = self.now + self.rng.random_range(1..20) * SECOND;
                self.tell("the server cannot be reached for a while");
            }
            6 => self.delete(index),
            7 => self.resign(index),
            8 => self.restart(index),
            _ => self.processes[index].stop_wall_clock(self.now),
        }
    }

    fn pause(&mut self, index: usize) {
        if self.processes[index].paused_until.is_some() {
            return;
        }
        let lease = self.times[0].lease.as_micros() as u64;
        let long = match self.rng.random_range(0..3) {
            0 => self.rng.random_range(1_000..SECOND),
            1 => self.rng.random_range(SECOND..lease),
            _ => self.rng.random_range(lease..4 * lease),
        };
        let name = self.processes[index].name.clone();
        self.tell(format_args!("{name} is paused for {:.3} s", long as f64 / SECOND as f64));
        self.processes[index].paused_until = Some(self.now + long);
        self.plan(long, Event::Wake(index));
    }

    fn wake(&mut self, index: usize) {
        let process = &mut self.processes[index];
        if process.paused_until.is_none_or(|until| until > self.now) {
            return;
        }
        process.paused_until = None;
        let name = process.name.clone();
        self.tell(format_args!("{name} is awake"));
        let waiting = std::mem::take(&mut self.processes[index].waiting);
        for input in waiting {
            self.act(index, input);
        }
    }

    /// Somebody deletes the Lease, and sometimes starts a process anew, which has not seen it then.
    fn delete(&mut self, index: usize) {
        if self.server.delete(self.now) {
            self.tell("somebody deletes the Lease");
            if self.rng.random_bool(0.3) {
                self.restart(index);
            }
        }
    }

    /// The work of a process ends and it gives the Lease back; some time later it is started again.
    fn resign(&mut self, index: usize) {
        let process = &mut self.processes[index];
        if process.paused_until.is_none() && !process.leaving && process.writing.is_none() {
            process.leaving = true;
            self.act(index, Input::Resign);
        }
    }

    /// A process dies, or has ended, and is started anew. It remembers nothing.
    fn restart(&mut self, index: usize) {
        self.processes[index] = self.process(index);
        self.act(index, Input::Start);
    }

    fn calm_down(&mut self) {
        self.tell("all goes well from here on");
        (self.calm, self.outage_until) = (true, 0);
        let on_the_way = |event: &Event| !matches!(event, Event::Request { .. } | Event::Answer { .. });
        self.under_way.retain(|_, event| on_the_way(event));
        for index in 0..self.processes.len() {
            if self.processes[index].paused_until.is_some() {
                self.processes[index].paused_until = Some(self.now);
                self.wake(index);
            }
            if self.processes[index].leaving {
                self.restart(index);
            }
        }
    }
}
