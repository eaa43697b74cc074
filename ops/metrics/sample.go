package metrics

import (
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/droverhq/drover/internal/tally"
)

// sample is a value of a metric. It implements [prometheus.Metric].
type sample struct {
	*Metric
	series *series
	value  float64
	times  *tally.Snapshot // of a histogram
}

func (s *sample) Desc() *prometheus.Desc { return s.desc }

func (s *sample) Write(out *dto.Metric) error {
	out.Label = s.series.pairs
	switch s.Kind {
	case Counter:
		out.Counter = &dto.Counter{Value: &s.value}
	case Gauge:
		out.Gauge = &dto.Gauge{Value: &s.value}
	case Histogram:
		out.Histogram = histogram(s.times)
	}
	return nil
}

// histogram has the classic buckets, and the native ones for those who ask for them.
func histogram(s *tally.Snapshot) *dto.Histogram {
	h := &struct {
		dto.Histogram
		buckets [len(tally.Classic)]dto.Bucket
		all     [len(tally.Classic)]*dto.Bucket
	}{}
	for i := range h.buckets {
		b := &h.buckets[i]
		b.UpperBound, b.CumulativeCount = &classic[i], &s.Upto[i]
		h.all[i] = b
	}
	h.Bucket = h.all[:]
	h.SampleCount, h.SampleSum = &s.Count, &s.Sum
	h.Schema, h.ZeroThreshold, h.ZeroCount = &schema, &zero, &s.Zero
	last, before := math.MinInt32, uint64(0)
	for _, b := range s.Buckets {
		if n := len(h.PositiveSpan); n == 0 || b.I != last+1 {
			offset := int32(b.I)
			if n > 0 {
				offset = int32(b.I - last - 1)
			}
			length := uint32(0)
			h.PositiveSpan = append(h.PositiveSpan, &dto.BucketSpan{Offset: &offset, Length: &length})
		}
		*h.PositiveSpan[len(h.PositiveSpan)-1].Length++
		h.PositiveDelta = append(h.PositiveDelta, int64(b.N)-int64(before))
		last, before = b.I, b.N
	}
	if len(h.PositiveSpan) == 0 { // or it would be taken for one without native buckets
		var none uint32
		var at int32
		h.PositiveSpan = []*dto.BucketSpan{{Offset: &at, Length: &none}}
	}
	return &h.Histogram
}

var (
	classic = tally.Classic
	schema  = int32(tally.Schema)
	zero    = tally.Zero
)

// labels remembers those of all series from one scrape to the next.
type labels struct {
	mu sync.Mutex
	by map[key]*series
}

// key is a metric and the values of its labels.
type key struct {
	metric *Metric
	values [4]string
}

// series are the labels of one, in both forms.
type series struct {
	pairs []*dto.LabelPair
	text  string // as they stand between braces
}

func (l *labels) of(m *Metric, values ...string) *series {
	k := key{metric: m}
	copy(k.values[:], values)
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.by[k]
	if s == nil {
		valid := slices.Clone(values)
		for i, v := range valid {
			valid[i] = strings.ToValidUTF8(v, "?") // or there would be no scrape at all
		}
		s = &series{pairs: prometheus.MakeLabelPairs(m.desc, valid)}
		for i, p := range s.pairs {
			if i > 0 {
				s.text += ","
			}
			s.text += p.GetName() + `="` + escape.Replace(p.GetValue()) + `"`
		}
		if l.by == nil {
			l.by = map[key]*series{}
		}
		l.by[k] = s
	}
	return s
}
