package docs_test

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/gosource"
	"github.com/droverhq/drover/schemas"
)

// builder is a method of subject.Namespace and what it writes when each argument is the name of its parameter.
type builder struct {
	*gosource.Method
	pattern string
}

// kind tells what the builder's text is: "stream", "bucket", "store", "wildcards" or "subjects".
func (b builder) kind() string {
	switch {
	case strings.HasPrefix(b.Name, "Stream"):
		return "stream"
	case strings.HasPrefix(b.Name, "Bucket"):
		return "bucket"
	case strings.HasPrefix(b.Name, "Store"):
		return "store"
	case slices.ContainsFunc(strings.Split(b.pattern, "."), func(token string) bool { return token == "*" || token == ">" }):
		return "wildcards"
	default:
		return "subjects"
	}
}

// builders calls every method of subject.Namespace that returns one text.
func builders(t *testing.T) []builder {
	t.Helper()
	var all []builder
	ns := reflect.ValueOf(subject.Namespace("<ns>"))
	for _, m := range source(t, "broker/subject").Methods {
		fn := ns.MethodByName(m.Name)
		if m.Receiver != "Namespace" || !fn.IsValid() {
			t.Fatalf("%s.%s is no method of a namespace: add it to this test", m.Receiver, m.Name)
		}
		if fn.Type().NumOut() == 1 && fn.Type().Out(0).Kind() == reflect.String {
			all = append(all, builder{m, patternOf(fn, m.Params)})
		}
	}
	return all
}

// patternOf calls fn with words that no escape touches, and puts <parameter> where they come out.
func patternOf(fn reflect.Value, params []string) string {
	var in []reflect.Value
	replace := []string{}
	for i, p := range params {
		typ, mark, form := fn.Type().In(i), fmt.Sprintf("=%d=", i), "<"+p+">"
		if fn.Type().IsVariadic() && i == len(params)-1 {
			typ, form = typ.Elem(), form+"…"
		}
		if typ.Kind() == reflect.Int {
			n := 7000001 + i
			in, mark = append(in, reflect.ValueOf(n)), strconv.Itoa(n)
		} else {
			in = append(in, reflect.ValueOf(mark))
		}
		replace = append(replace, mark, form, base64.URLEncoding.EncodeToString([]byte(mark)), "<"+p+" in base64>")
	}
	out := strings.NewReplacer(replace...).Replace(fn.Call(in)[0].String())
	if n := len(params); n > 0 && !strings.Contains(out, "<"+params[n-1]) {
		out = out[:strings.LastIndexByte(out, '.')+1] + "<" + params[n-1] + ">" // it is written as one of a few
	}
	return out
}

// written is the pattern in a comment, which the table shows in its first column.
var written = regexp.MustCompile(`: (drover[.-]|\$O\.|OBJ_)[^ ]*( in base64>)?(\.$|\. |$)`)

// sentence is a comment without its pattern.
func (b builder) sentence() string {
	return text(strings.TrimSpace(written.ReplaceAllString(gosource.Paragraph(b.Doc), ". ")))
}

func builderTable(t *testing.T, head string, kinds ...string) string {
	var body [][]string
	for _, b := range builders(t) {
		if slices.Contains(kinds, b.kind()) {
			body = append(body, []string{"`" + b.pattern + "`", b.sentence()})
		}
	}
	return table([]string{head, "meaning"}, body)
}

func subjects(t *testing.T) string { return builderTable(t, "subject", "subjects") }

func wildcards(t *testing.T) string {
	source, destination := subject.Namespace("<ns>").SignalTransform(4)
	return builderTable(t, "filter", "wildcards") +
		"\nThe signals stream of a namespace with 4 partitions turns `" + source + "` into `" + destination + "`.\n"
}

func names(t *testing.T) string { return builderTable(t, "name", "stream", "bucket", "store") }

// Each comment that gives a pattern gives the right one.
func TestSubjectComments(t *testing.T) {
	for _, b := range builders(t) {
		_, told, ok := strings.Cut(gosource.Paragraph(b.Doc), ": drover")
		if !ok {
			continue
		}
		told, _, _ = strings.Cut("drover"+told, " ")
		told = strings.TrimSuffix(strings.TrimSuffix(told, "."), ".>") // > is the last token, not the end of a form
		shape := func(s string) string {
			var b strings.Builder
			for i, part := range strings.Split(strings.TrimSuffix(s, ".>"), "<") {
				if i == 0 {
					b.WriteString(part)
					continue
				}
				_, rest, _ := strings.Cut(part, ">")
				b.WriteString("?" + rest)
			}
			return strings.NewReplacer("[.", ".", "]", "", "?…", "?").Replace(b.String())
		}
		if got, want := shape(told), shape(b.pattern); got != want {
			t.Errorf("the comment of %s says %q, and it writes %q", b.Name, told, b.pattern)
		}
	}
}

func tokens(*testing.T) string {
	var body [][]string
	for _, id := range []string{"order-17", "eu/order 17", "a.b", "*", ">", "100%", "%2E", "user@example.com", "Zoë", "牛"} {
		body = append(body, []string{"`" + id + "`", "`" + subject.Token(id) + "`", strconv.Itoa(subject.Partition(id, 4))})
	}
	return table([]string{"id", "token", "partition of 4"}, body)
}

func streams(*testing.T) string {
	// One partition, whose number is not told apart from others, stands for all.
	n := topology.Namespace{Name: "<ns>", Partitions: 1, Replicas: 1}
	var body [][]string
	for _, c := range n.Plan("<list>") {
		name := c.Name
		for _, s := range []string{n.Name.StreamIn(0), n.Name.StreamHistory(0), n.Name.StreamAlarms(0)} {
			if name == s {
				name = strings.TrimSuffix(name, "0") + "<p>"
			}
		}
		subjects := strings.ReplaceAll(strings.Join(c.Subjects, "`, `"), ".0.>", ".<p>.>")
		var more []string
		add := func(on bool, what string) {
			if on {
				more = append(more, what)
			}
		}
		add(c.MaxMsgsPerSubject == 1, "one message a subject")
		add(c.MaxMsgsPerSubject > 1, fmt.Sprintf("at most %d messages a subject", c.MaxMsgsPerSubject))
		add(c.DenyDelete, "no deletes")
		add(c.AllowRollup, "rollups")
		add(c.AllowDirect, "direct gets")
		add(c.AllowMsgTTL, "message TTLs")
		add(c.SubjectDeleteMarkerTTL > 0, "deletion marks live "+c.SubjectDeleteMarkerTTL.String())
		add(c.SubjectTransform != nil, "subject transform")
		add(c.Duplicates == 0, "the server's own duplicate window")
		add(c.AllowMsgSchedules, "message schedules")
		add(c.AllowAtomicPublish, "atomic batches")
		body = append(body, []string{
			"`" + name + "`", "`" + subjects + "`", strings.ToLower(c.Retention.String()), strings.ToLower(strings.TrimPrefix(c.Discard.String(), "Discard")),
			strings.ToLower(c.Compression.String()), strings.Join(more, ", "),
			text(strings.ReplaceAll(strings.TrimPrefix(c.Description, "Drover: "), "partition 0", "partition <p>")),
		})
	}
	return table([]string{"stream", "subjects", "retention", "when full, discard", "compression", "further settings", "description"}, body)
}

// The buckets and stores that are made have names that the table of names knows, and the other way round.
func TestBucketsAreKnown(t *testing.T) {
	made := map[string]bool{}
	for _, c := range (&topology.Namespace{Name: "<ns>", Partitions: 1, Replicas: 1}).Plan("l") {
		made[strings.TrimPrefix(strings.TrimPrefix(c.Name, "KV_"), "OBJ_")] = true
	}
	var paper []string
	for _, r := range rows(section(t, "reference/streams.md", "## Buckets and their keys")) {
		name := strings.Trim(r[0], "`")
		paper = append(paper, name)
		if reserved := strings.Contains(r[1], "reserved"); reserved == made[name] {
			t.Errorf("%s: the paper says reserved: %v; it is made: %v", name, reserved, made[name])
		}
	}
	known := []string{subject.BucketNodes}
	for _, b := range builders(t) {
		if b.kind() == "bucket" || b.kind() == "store" {
			known = append(known, b.pattern)
		}
	}
	same(t, "buckets", paper, known)
}

// Both packages have rules for names, so that neither need know the other. They agree.
func TestLimitsAgree(t *testing.T) {
	if schemas.MaxIDLen != subject.MaxIDBytes || schemas.MaxNameLen != subject.MaxNameBytes {
		t.Fatalf("got %d and %d, %d and %d, want the same", schemas.MaxIDLen, subject.MaxIDBytes, schemas.MaxNameLen, subject.MaxNameBytes)
	}
}
