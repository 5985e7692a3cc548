//! Statements from `-c`, `-f` and stdin; the formats.

use super::{directory, sql, tanada, tanada_with_stdin};

const NATIONS: &str =
    "select n_nationkey, n_name, cast(null as int) as nothing from nation where n_nationkey < 2 order by 1";

#[test]
fn tsv_is_the_default_where_there_is_no_terminal() {
    assert_eq!(
        sql(&["-c", NATIONS]).output(),
        "n_nationkey\tn_name\tnothing\n0\tALGERIA\tNULL\n1\tARGENTINA\tNULL\n"
    );
}

#[test]
fn each_format_writes_the_same_rows() {
    let written = |format| sql(&["-c", NATIONS, "--format", format]).output();
    assert_eq!(written("csv"), "n_nationkey,n_name,nothing\r\n0,ALGERIA,\r\n1,ARGENTINA,\r\n");
    let rows: serde_json::Value = serde_json::from_str(&written("json")).unwrap();
    let first = serde_json::json!({"n_nationkey": 0, "n_name": "ALGERIA", "nothing": null});
    assert_eq!((&rows[0], rows.as_array().map(Vec::len)), (&first, Some(2)));
    let table = "\
+-------------+-----------+---------+
| n_nationkey | n_name    | nothing |
+-------------+-----------+---------+
|           0 | ALGERIA   |    NULL |
|           1 | ARGENTINA |    NULL |
+-------------+-----------+---------+
";
    assert_eq!(written("table"), table);
}

#[test]
fn control_characters_are_escaped_as_mysql_batch_does() {
    let text = r"select concat('\t', 'a', '\n', 'b', '\\') as text, '' as empty";
    assert_eq!(sql(&["-c", text]).output(), "text\tempty\n\\ta\\nb\\\\\t\n");
    assert_eq!(sql(&["-c", text, "--format", "csv"]).output(), "text,empty\r\n\"\ta\nb\\\",\"\"\r\n");
}

#[test]
fn answers_are_those_of_the_servers() {
    for server in ["mysql-9.7", "mariadb-10.11"] {
        let directory = directory(server).display().to_string();
        for query in tanada_sample::queries() {
            let output =
                tanada(&["sql", "--innodb", &directory, "--database", "tpch", "-c", query.sql]).output();
            let rows = output.lines().skip(1).map(str::to_owned).collect();
            tanada_sample::answer::check(rows, query.answer)
                .unwrap_or_else(|error| panic!("{server} {}: {error}", query.name));
            assert_eq!(output.lines().next(), query.answer.lines().next(), "{server} {}: header", query.name);
        }
    }
}

#[test]
fn several_statements_run_in_order_and_some_have_no_result() {
    let text = "use tpch; select 1 as a; set tanada.execution = 'in_order'; select count(*) as n from region -- the end";
    assert_eq!(sql(&["-c", text]).output(), "a\n1\nn\n5\n");
}

#[test]
fn statements_come_from_a_file_or_stdin() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.sql");
    std::fs::write(&file, "select 'from\nfile; not two' as x;\n").unwrap();
    let file = file.display().to_string();
    assert_eq!(tanada(&["sql", "-f", &file]).output(), "x\nfrom\\nfile; not two\n");
    assert_eq!(tanada_with_stdin(&["sql"], "select 1 as a;\nselect 2 as b").output(), "a\n1\nb\n2\n");
    assert_eq!(tanada_with_stdin(&["sql", "-f", "-"], "select 3 as c").output(), "c\n3\n");
    assert_eq!(tanada_with_stdin(&["sql"], "").output(), "");
}

#[test]
fn settings_are_set() {
    let show = |set: &str| sql(&["--set", set, "-c", "show tanada.execution"]).output();
    assert!(show("tanada.execution=in_order").contains("in_order"));
    assert!(show("tanada.execution = out_of_order").contains("out_of_order"));
}

#[test]
fn a_single_tablespace_and_a_database_folder_can_be_mounted() {
    let folder = directory("mysql-9.7").join("tpch");
    for path in [folder.join("region.ibd"), folder] {
        let path = path.display().to_string();
        let outcome = tanada(&["sql", "--innodb", &path, "-c", "select count(*) as n from region"]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "n\n5\n"), "{path}: {}", outcome.stderr);
    }
}

#[test]
fn every_way_of_reading_gives_the_same() {
    for method in ["uring", "aio", "threads", "buffered"] {
        let arguments = [
            "--method",
            method,
            "--cache",
            "8MiB",
            "--no-verify-checksums",
            "-c",
            "select count(*) as n from lineitem",
        ];
        assert_eq!(sql(&arguments).output(), "n\n120515\n", "{method}");
    }
}

#[test]
fn timing_goes_to_stderr() {
    let outcome = sql(&["--timing", "-c", "select count(*) as n from region"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "n\n5\n"));
    assert!(outcome.stderr.starts_with("1 row, ") && outcome.stderr.contains("I/O"), "{}", outcome.stderr);
}

#[test]
fn statements_after_a_failed_one_are_run_if_forced() {
    let text = "select 1 as a;\nselect wrong from nation;\n\nselect 2 as b;\n";
    let outcome = sql(&["-c", text]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, "a\n1\n"));
    let outcome = sql(&["-c", text, "--force"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, "a\n1\nb\n2\n"));
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    assert!(lines[0].starts_with("tanada: line 2: "), "{lines:?}");
    assert_eq!(lines[1..], ["tanada: 1 statement failed"]);
}

#[test]
fn a_statement_that_ends_with_backslash_g_shows_a_line_per_column() {
    let text = r"select 1 as a, null as longer\G select 2 as b\g";
    let stars = "*".repeat(27);
    let expected = format!("{stars} 1. row {stars}\n     a: 1\nlonger: NULL\nb\n2\n");
    assert_eq!(sql(&["-c", text]).output(), expected);
    assert_eq!(
        sql(&["-c", "select 1 as a", "--format", "vertical"]).output(),
        format!("{stars} 1. row {stars}\na: 1\n")
    );
}
