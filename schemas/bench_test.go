package schemas_test

import (
	"testing"

	"github.com/droverhq/drover/schemas"
)

func benchRecord() *schemas.Record {
	return &schemas.Record{
		WorkflowID: "order-17", Run: "01HX5S0000000000000000000A", First: 1, Events: s144(), Fence: 4711,
		Inbox: schemas.Position{Incarnation: 1, Sequence: 77, Time: base}, Previous: make([]byte, 32),
	}
}

func benchBody(b *testing.B) []byte {
	b.Helper()
	body, err := schemas.Marshal(benchRecord())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	return body
}

func BenchmarkMarshalRecord(b *testing.B) {
	r := benchRecord()
	benchBody(b)
	for b.Loop() {
		if _, err := schemas.Marshal(r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnmarshalRecord(b *testing.B) {
	body := benchBody(b)
	for b.Loop() {
		var r schemas.Record
		if err := schemas.Unmarshal(body, &r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	body := benchBody(b)
	for b.Loop() {
		if err := schemas.Scan(body[1:]); err != nil {
			b.Fatal(err)
		}
	}
}
