package env

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A stream is stopped by its own limit or by that of its account, and an account may have one for each number of replicas.
func TestCloserLimit(t *testing.T) {
	tier := func(used uint64, most int64) jetstream.Tier {
		return jetstream.Tier{Store: used, Memory: 1, Limits: jetstream.AccountLimits{MaxStore: most, MaxMemory: 2}}
	}
	file := jetstream.StreamConfig{Replicas: 3, MaxBytes: 100}
	free, memory := file, file
	free.MaxBytes, memory.Storage = -1, jetstream.MemoryStorage
	tiers := map[string]jetstream.Tier{"R1": tier(99, 100), "R3": tier(180, 100)}
	for name, tc := range map[string]struct {
		stream  jetstream.StreamConfig
		account jetstream.AccountInfo
		want    Quota
	}{
		"no limits":                {free, jetstream.AccountInfo{Tier: tier(60, -1)}, Quota{Limit: -1, Bytes: 50}},
		"the stream alone":         {file, jetstream.AccountInfo{Tier: tier(60, -1)}, Quota{Limit: 100, Bytes: 50}},
		"the account alone":        {free, jetstream.AccountInfo{Tier: tier(10, 100)}, Quota{Account: true, Limit: 100, Bytes: 10}},
		"the account is closer":    {file, jetstream.AccountInfo{Tier: tier(60, 100)}, Quota{Account: true, Limit: 100, Bytes: 60}},
		"the stream is closer":     {file, jetstream.AccountInfo{Tier: tier(40, 100)}, Quota{Limit: 100, Bytes: 50}},
		"the tier of the replicas": {file, jetstream.AccountInfo{Tiers: tiers}, Quota{Account: true, Limit: 300, Bytes: 180}},
		"memory":                   {memory, jetstream.AccountInfo{Tier: tier(99, 100)}, Quota{Limit: 100, Bytes: 50}},
		"little memory":            {memory, jetstream.AccountInfo{Tier: jetstream.Tier{Memory: 3, Limits: jetstream.AccountLimits{MaxMemory: 4}}}, Quota{Account: true, Limit: 4, Bytes: 3}},
	} {
		if got := closer(&tc.stream, 50, &tc.account); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}

// A server is looked at the more often the nearer it is to its limit, and one of any size now and then.
func TestLookAgain(t *testing.T) {
	for _, tt := range []struct {
		r    Quota
		want time.Duration
	}{
		{Quota{}, QuotaEvery},
		{Quota{Limit: 1 << 62, Bytes: 1}, QuotaEvery},
		{Quota{Limit: 100_000_000_000, Bytes: 89_900_000_000}, time.Second},
		{Quota{Limit: 100_000_000_000, Bytes: 89_990_000_000}, 100 * time.Millisecond},
		{Quota{Limit: 100_000_000_000, Bytes: 89_999_999_999}, quotaSoon},
		{Quota{Limit: 100_000_000_000, Bytes: 99_999_999_999}, quotaSoon},
		{Quota{Limit: 1 << 20}, quotaSoon},
	} {
		if got := tt.r.lookAgain(); got != tt.want {
			t.Errorf("%+v: got %v, want %v", tt.r, got, tt.want)
		}
	}
}
