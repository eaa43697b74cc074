package expr_test

import (
	"testing"

	"github.com/droverhq/drover/decider/flow/expr"
)

func BenchmarkTemplate(b *testing.B) {
	x, err := expr.ParseTemplate("http://host/check?request_id=${s}&n=${l[2].deep}")
	if err != nil {
		b.Fatal(err)
	}
	names := vars()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := x.Eval(expr.NewEnv(names, nil)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLet(b *testing.B) {
	x, err := expr.ParseLet("${absent} ?? ${i} * 3 + 1")
	if err != nil {
		b.Fatal(err)
	}
	names := vars()
	b.ReportAllocs()
	for b.Loop() {
		if v, err := x.Eval(expr.NewEnv(names, nil)); err != nil || v != int64(22) {
			b.Fatal(v, err)
		}
	}
}

func BenchmarkParseLet(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := expr.ParseLet("${absent} ?? ${i} * 3 + 1"); err != nil {
			b.Fatal(err)
		}
	}
}
