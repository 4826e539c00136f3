use super::*;
use tontine_group::TopicPartition;

fn entry(at: i64, member: &str, event: Event) -> Entry {
    let partition = TopicPartition::new("orders", 3);
    Entry { at, group: "g".into(), member: member.into(), epoch: 1, partition, event }
}

fn released(from: i64, first: i64, last: i64) -> Event {
    let (first, last, committed) = (Some(first), Some(last), Some(last + 1));
    Event::Released {
        from,
        why: Why::Revoked,
        first,
        last,
        committed,
        sought: false,
        in_rounds: true,
        confirmed: None,
    }
}

fn assigned() -> Event {
    Event::Assigned { instance: None, in_rounds: true }
}

/// One member after the other, as it should be.
fn good() -> Vec<Entry> {
    vec![
        entry(0, "a", assigned()),
        entry(5, "a", Event::Committed { offset: 10 }),
        entry(9, "a", released(0, 0, 9)),
        entry(10, "b", assigned()),
        entry(15, "b", Event::Committed { offset: 20 }),
        entry(19, "b", released(10, 10, 19)),
    ]
}

fn judge(entries: Vec<Entry>) -> Verdict {
    let mut audit = Audit::default();
    for (at, entry) in entries.into_iter().enumerate() {
        audit.add(format!("log:{at}"), entry);
    }
    audit.judge()
}

fn only_problem(entries: Vec<Entry>) -> String {
    let verdict = judge(entries);
    assert_eq!(verdict.problems.len(), 1, "{verdict}");
    verdict.problems[0].to_string()
}

#[test]
fn what_fits_is_clean() {
    let verdict = judge(good());
    assert!(verdict.is_clean(), "{verdict}");
    assert_eq!((verdict.partitions, verdict.ownerships, verdict.commits), (1, 2, 2));
}

#[test]
fn every_entry_is_read_as_it_was_written() {
    let mut entries = good();
    entries[0].member = "a \"quoted\"\\\u{1}".into();
    for entry in entries {
        assert_eq!(Entry::parse(&entry.line()), Ok(entry));
    }
    for event in [
        Event::Sought,
        Event::Asked { offset: 7 },
        Event::Assigned { instance: Some("i".into()), in_rounds: true },
    ] {
        let entry = entry(3, "a", event);
        assert_eq!(Entry::parse(&entry.line()), Ok(entry));
    }
    let nothing = Event::Released {
        from: 1,
        why: Why::Lost,
        first: None,
        last: None,
        committed: None,
        sought: true,
        in_rounds: false,
        confirmed: Some(2),
    };
    let entry = entry(3, "a", nothing);
    assert_eq!(Entry::parse(&entry.line()), Ok(entry));
}

#[test]
fn no_line_breaks_the_reader() {
    let line = good()[2].line();
    for end in 0..line.len() {
        let cut = Entry::parse(&line[..end]);
        assert!(cut.is_err(), "{}: {cut:?}", &line[..end]);
    }
    for odd in ["{}", "[]", "{\"at\":x}", "{\"\\u12", "{\"a\":\"\\uzzzz\"}", "{\"at\":99999999999999999999}"]
    {
        assert!(Entry::parse(odd).is_err(), "{odd}");
    }
}

#[test]
fn only_the_last_line_may_be_cut_off() {
    let lines: Vec<_> = good().iter().map(Entry::line).collect();
    let mut audit = Audit::default();
    assert_eq!(audit.read("a.log", &format!("{}\n{}", lines[0], &lines[1][..20])), Ok(()));
    let error = audit.read("a.log", &format!("{}\n{}\n", &lines[0][..20], lines[1])).unwrap_err();
    assert!(error.starts_with("a.log:1: "), "{error}");
}

#[test]
fn two_owners_at_once_are_named() {
    let mut entries = good();
    entries[3].at = 7;
    assert_eq!(only_problem(entries), "log:3: orders-3: b got it 2 ms before a had given it up (log:0)");
}

#[test]
fn an_overlap_within_the_tolerance_or_after_a_loss_is_none() {
    let mut entries = good();
    entries[3].at = 7;
    let mut audit = Audit::new(5);
    entries.iter().for_each(|entry| audit.add("log", entry.clone()));
    assert!(audit.judge().is_clean());
    if let Event::Released { why, .. } = &mut entries[2].event {
        *why = Why::Lost;
    }
    assert!(judge(entries).is_clean(), "the coordinator had put it out");
}

/// The second member begins before the first one has given the partition up.
fn overlapping() -> Vec<Entry> {
    let mut entries = good();
    entries[3].at = 7;
    entries
}

#[test]
fn a_member_that_did_not_come_along_to_the_next_generation_could_not_know() {
    let mut entries = overlapping();
    entries[3..].iter_mut().for_each(|entry| entry.epoch = 2);
    let verdict = judge(entries.clone());
    assert!(verdict.is_clean(), "{verdict}");
    assert_eq!(verdict.outlived, 1);
    assert!(verdict.to_string().contains("1 times a member that had been put out"), "{verdict}");
    // One that did come along had to give it up before.
    entries[2].epoch = 2;
    assert!(only_problem(entries.clone()).contains("b got it 2 ms before a had given it up"));
    // Where every member has an epoch of its own, they tell nothing.
    entries[2].epoch = 1;
    let with = |confirmed_at| {
        let mut entries = entries.clone();
        if let Event::Released { in_rounds, confirmed, .. } = &mut entries[2].event {
            (*in_rounds, *confirmed) = (false, confirmed_at);
        }
        entries
    };
    for confirmed in [None, Some(7), Some(8)] {
        assert!(only_problem(with(confirmed)).contains("b got it 2 ms before a had given it up"));
    }
    assert!(judge(with(Some(6))).is_clean(), "nobody had confirmed it since b got the partition");
    // Or b is the one: it was told of the partition long before its callback ended.
    let mut late = with(Some(8));
    late.iter_mut().for_each(|entry| entry.at += 100);
    if let Event::Released { confirmed, .. } = &mut late[5].event {
        *confirmed = Some(99);
    }
    assert!(judge(late).is_clean(), "nobody had confirmed b since a got the partition");
}

/// The first member ended its ownership like this.
fn ended(entries: &mut [Entry], at: usize, rounds: bool, last_confirmed: i64) {
    if let Event::Released { in_rounds, confirmed, .. } = &mut entries[at].event {
        (*in_rounds, *confirmed) = (rounds, Some(last_confirmed));
    }
}

#[test]
fn generations_say_nothing_when_one_of_the_two_speaks_the_consumer_protocol() {
    // A classic group that was empty in between: the same number is no common generation.
    let mut entries = overlapping();
    ended(&mut entries, 2, true, 6);
    entries[3].event = Event::Assigned { instance: None, in_rounds: false };
    ended(&mut entries, 5, false, 19);
    assert!(judge(entries.clone()).is_clean(), "nobody had confirmed a since b got the partition");
    assert!(judge(entries[..5].to_vec()).is_clean(), "b still has it");
    // Nor is another number a later one: both were members.
    entries[3..].iter_mut().for_each(|entry| entry.epoch = 2);
    ended(&mut entries, 2, true, 8);
    assert!(only_problem(entries).contains("b got it 2 ms before a had given it up"));
}

#[test]
fn clocks_may_differ_in_what_a_member_was_confirmed_at_too() {
    let mut entries = overlapping();
    ended(&mut entries, 5, false, 19);
    let verdict = |last_confirmed| {
        let (mut entries, mut audit) = (entries.clone(), Audit::new(1));
        ended(&mut entries, 2, false, last_confirmed);
        entries.into_iter().for_each(|entry| audit.add("log", entry));
        audit.judge()
    };
    assert!(verdict(7).is_clean(), "by b's clock it was before b got the partition");
    assert_eq!(verdict(8).problems.len(), 1);
}

#[test]
fn whoever_takes_over_as_the_same_static_member_overlaps_with_nobody() {
    let mut entries = overlapping();
    entries[0].event = Event::Assigned { instance: Some("i".into()), in_rounds: true };
    entries[3].event = Event::Assigned { instance: Some("j".into()), in_rounds: true };
    assert!(only_problem(entries.clone()).contains("b got it 2 ms before a had given it up"));
    entries[3].event = Event::Assigned { instance: Some("i".into()), in_rounds: true };
    let verdict = judge(entries);
    assert!(verdict.is_clean(), "{verdict}");
    assert_eq!(verdict.outlived, 1);
}

#[test]
fn what_a_member_that_died_wanted_to_commit_was_handed_out() {
    let mut entries = good();
    entries[2] = entry(9, "a", Event::Asked { offset: 12 });
    entries[5] = entry(19, "b", released(10, 12, 19));
    assert!(judge(entries.clone()).is_clean());
    entries[5] = entry(19, "b", released(10, 13, 19));
    assert!(only_problem(entries).contains("12..13 was handed out to nobody"));
}

#[test]
fn a_member_that_died_without_a_word_overlaps_with_nobody() {
    let mut entries = good();
    entries.remove(2);
    let verdict = judge(entries);
    assert!(verdict.is_clean(), "{verdict}");
    assert_eq!(verdict.unfinished, 1);
}

#[test]
fn records_that_nobody_got_are_named() {
    let mut entries = good();
    entries[5] = entry(19, "b", released(10, 12, 19));
    assert_eq!(only_problem(entries), "log:3: orders-3: b begins at 12, but 10..12 was handed out to nobody");
}

#[test]
fn what_a_twin_read_before_an_ownership_began_to_read_is_no_gap() {
    // c reads up to 10; a gets the partition, and b takes it over from a, reads on and commits before a asks where to begin.
    let twin = || Event::Assigned { instance: Some("i".into()), in_rounds: true };
    let mut entries = vec![
        entry(0, "c", assigned()),
        entry(5, "c", released(0, 0, 9)),
        entry(10, "a", twin()),
        entry(11, "b", twin()),
        entry(15, "a", released(10, 20, 20)),
        entry(20, "b", released(11, 10, 25)),
    ];
    assert!(judge(entries.clone()).is_clean(), "{}", judge(entries));
    // b still has it: what it has committed says how far it read.
    entries[5] = entry(14, "b", Event::Committed { offset: 20 });
    assert!(judge(entries.clone()).is_clean(), "{}", judge(entries));
    entries[5] = entry(20, "b", released(11, 10, 25));
    // What b took over after a had gone tells nothing of what a skipped.
    (entries[3].at, entries[5].at) = (16, 21);
    assert!(only_problem(entries).contains("a begins at 20, but 10..20 was handed out to nobody"));
}

#[test]
fn a_commit_after_the_partition_was_given_up_is_named() {
    let mut entries = good();
    entries.push(entry(12, "a", Event::Committed { offset: 10 }));
    assert_eq!(
        only_problem(entries),
        "log:6: orders-3: a commits 10 3 ms after it had given the partition up"
    );
}

#[test]
fn a_commit_that_goes_back_is_named() {
    let mut entries = good();
    entries.push(entry(17, "b", Event::Committed { offset: 15 }));
    assert_eq!(only_problem(entries), "log:6: orders-3: b commits 15 after b had committed 20");
}
