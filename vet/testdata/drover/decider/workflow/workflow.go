// Package workflow has the names that tests need.
package workflow

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/droverhq/drover/contract"
)

type (
	Context        struct{}
	Future[T any]  struct{}
	Channel[T any] struct{}
	Saga           struct{}
)

func (Context) Err() error { return nil }

func (*Future[T]) Get(Context) (v T, err error) { return v, err }
func (*Future[T]) Ready() bool                  { return false }

func (*Saga) Add(func(Context) error) {}

func Call[In, Out any](Context, *contract.ActivityOf[In, Out], In) (o Out, err error) { return o, err }
func Start[In, Out any](Context, *contract.ActivityOf[In, Out], In) *Future[Out]      { return nil }
func Go[T any](Context, func(Context) (T, error)) *Future[T]                          { return nil }
func Timer(Context, time.Duration) *Future[struct{}]                                  { return nil }
func Sleep(Context, time.Duration) error                                              { return nil }
func WaitFor(Context, func() bool) error                                              { return nil }
func Now(Context) (t time.Time)                                                       { return t }
func Rand(Context) *rand.Rand                                                         { return nil }
func ContinueAsNew[In any](Context, In) error                                         { return nil }
func Once[T any](_ Context, _ string, fn func() T) T                                  { return fn() }

func Do[T any](_ Context, _ string, fn func(context.Context) (T, error)) (T, error) {
	return fn(context.Background())
}
