package metrics

import (
	"math"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/droverhq/drover/internal/tally"
)

// sample is a value of a metric. It implements [prometheus.Metric].
type sample struct {
	*Metric
	labels []*dto.LabelPair
	value  float64
	times  *tally.Snapshot // of a histogram
}

func (s *sample) Desc() *prometheus.Desc { return s.desc }

func (s *sample) Write(out *dto.Metric) error {
	out.Label = s.labels
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

// pairs remembers labels from one scrape to the next.
type pairs struct {
	mu sync.Mutex
	by map[series][]*dto.LabelPair
}

type series struct {
	metric *Metric
	values [4]string
}

func (p *pairs) of(m *Metric, values ...string) []*dto.LabelPair {
	key := series{metric: m}
	copy(key.values[:], values)
	p.mu.Lock()
	defer p.mu.Unlock()
	labels, known := p.by[key]
	if !known {
		labels = prometheus.MakeLabelPairs(m.desc, append([]string(nil), values...))
		if p.by == nil {
			p.by = map[series][]*dto.LabelPair{}
		}
		p.by[key] = labels
	}
	return labels
}
