//! Lists, hints that are given once, and the record of what was asked.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::{ANTHROPIC, Line, OPENAI, Reply, ask, get, post, prompt};

fn statuses(drill: &str, marker: &str, requests: usize) -> Vec<u16> {
    let text = format!("#[{marker}]");
    (0..requests).map(|_| ask(OPENAI, drill, &text).status).collect()
}

fn stats(drill: &str) -> Value {
    get(&format!("/__stats?drill={drill}")).json()["drills"][drill].clone()
}

#[test]
fn a_count_ends_and_a_list_goes_on() {
    assert_eq!(statuses("count", "429x2", 4), [429, 429, 200, 200]);
    assert_eq!(statuses("count", "500,429,ok", 4), [500, 429, 200, 200]);
    assert_eq!(statuses("count", "ok,503", 3), [200, 503, 503]);
    assert_eq!(statuses("count", "429,quota,404", 3), [429, 429, 404]);
}

#[test]
fn drills_and_markers_count_apart() {
    assert_eq!(statuses("apart-1", "429x1", 2), [429, 200]);
    assert_eq!(statuses("apart-2", "429x1", 1), [429]);
    assert_eq!(statuses("apart-1", "503x1", 1), [503]);
    assert_eq!(ask(ANTHROPIC, "apart-2", "#[429x1]").status, 200);
}

#[test]
fn a_reset_forgets_one_drill() {
    assert_eq!(statuses("forget-1", "429x1", 2), [429, 200]);
    assert_eq!(statuses("forget-2", "429x1", 2), [429, 200]);
    assert_eq!(post("/__reset?drill=forget-1", "", "").status, 200);
    assert_eq!(stats("forget-1"), Value::Null);
    assert_eq!(statuses("forget-1", "429x1", 2), [429, 200]);
    assert_eq!(statuses("forget-2", "429x1", 1), [200]);
}

#[test]
fn seconds_and_milliseconds_are_asked_for_once() {
    for (marker, header, value) in [
        ("retry-after=2", "retry-after", "2"),
        ("retry-after=1.5", "retry-after", "1.5"),
        ("retry-ms=250", "retry-after-ms", "250"),
    ] {
        let asked = || ask(ANTHROPIC, "hints", &format!("#[{marker}]"));
        let first = asked();
        assert_eq!((first.status, first.header(header)), (429, Some(value)));
        let second = asked();
        assert_eq!((second.status, second.header(header)), (200, None));
    }
}

#[test]
fn a_date_is_as_far_from_the_date_of_the_response_as_was_asked() {
    let date = |reply: &Reply, name: &str| {
        let text = reply.header(name).expect("a date");
        httpdate::parse_http_date(text).expect("a date")
    };
    let first = ask(OPENAI, "dates", "#[retry-date=7]");
    assert_eq!(first.status, 429);
    let ahead = date(&first, "retry-after").duration_since(date(&first, "date"));
    assert_eq!(ahead.ok(), Some(Duration::from_secs(7)));
    assert_eq!(ask(OPENAI, "dates", "#[retry-date=7]").status, 200);
}

#[test]
fn the_record_tells_each_request() {
    let body = prompt("#[500,ok]", false);
    let headers = [("x-drill-id", "record"), ("x-stainless-retry-count", "1"), ("idempotency-key", "key-1")];
    let mut line = Line::open();
    line.send("POST", OPENAI, &headers, body.as_bytes());
    assert_eq!(line.receive().expect("a response").status, 500);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(post(ANTHROPIC, "record", &body).status, 200);
    assert_eq!(post(OPENAI, "record", "{").status, 400);

    let drill = stats("record");
    assert_eq!(drill["count"], 3);
    assert_eq!(drill["behaviours"]["gateway_malformed"]["count"], 1);
    let played = &drill["behaviours"]["500,ok"];
    assert_eq!(played["count"], 2);
    let (first, second) = (&played["requests"][0], &played["requests"][1]);
    assert_eq!((&first["attempt"], &second["attempt"]), (&1.into(), &2.into()));
    assert_eq!((&first["played"], &second["played"]), (&"500".into(), &"ok".into()));
    assert_eq!((&first["path"], &second["path"]), (&OPENAI.into(), &ANTHROPIC.into()));
    assert_eq!(first["body_hash"], second["body_hash"]);
    assert_eq!(first["body_length"], body.len());
    assert_eq!(first["x-stainless-retry-count"], "1");
    assert_eq!(first["idempotency-key"], "key-1");
    assert_eq!(second["idempotency-key"], Value::Null);
    let at = |request: &Value| request["at_ms"].as_f64().expect("a time");
    assert!(at(second) - at(first) >= 50.0);
}

#[test]
fn the_record_holds_every_drill_unless_one_is_asked_for() {
    ask(OPENAI, "all-1", "hi");
    ask(OPENAI, "all-2 with a space", "hi");
    let all = get("/__stats").json()["drills"].clone();
    assert_eq!(all["all-1"]["behaviours"]["ok"]["count"], 1);
    let one = get("/__stats?drill=all-2%20with+a%20space").json()["drills"].clone();
    assert_eq!(one.as_object().map(serde_json::Map::len), Some(1));
    assert_eq!(one["all-2 with a space"]["count"], 1);
}

#[test]
fn a_request_without_a_drill_counts_as_the_default_one() {
    let mut line = Line::open();
    line.send("POST", OPENAI, &[], prompt("#[409]", false).as_bytes());
    assert_eq!(line.receive().expect("a response").status, 409);
    assert_eq!(stats("default")["behaviours"]["409"]["count"], 1);
}

#[test]
fn a_held_answer_comes_once_its_drill_has_made_so_many_requests() {
    let mut line = Line::open();
    line.send("POST", OPENAI, &[("x-drill-id", "held")], prompt("#[hold=3]", false).as_bytes());
    assert_eq!(ask(OPENAI, "held-other", "hi").status, 200);
    assert_eq!(ask(OPENAI, "held", "hi").status, 200);
    assert!(line.is_silent_for(Duration::from_millis(100)));
    assert_eq!(ask(ANTHROPIC, "held", "#[401]").status, 401);
    assert_eq!(line.receive().expect("a response").status, 200);
    // The number was reached long ago.
    assert_eq!(ask(OPENAI, "held", "#[hold=3]").status, 200);
}

#[test]
fn a_slow_answer_is_recorded_when_it_is_asked_for() {
    let mut line = Line::open();
    let body = prompt("#[slow=600000]", false);
    line.send("POST", OPENAI, &[("x-drill-id", "slow")], body.as_bytes());
    while stats("slow")["count"] != 1 {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(line.is_silent_for(Duration::from_millis(100)));
    let started = Instant::now();
    assert_eq!(ask(OPENAI, "slow", "#[slow=400]").status, 200);
    assert!(started.elapsed() >= Duration::from_millis(400));
}
