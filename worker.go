package drover

import (
	"cmp"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
)

// Deciders returns a decider worker on the client's connection: register deciders with it, then
// call its Run. The zero value of Namespace, Identity and Logger is the client's; nil options mean
// all defaults.
func (c *Client) Deciders(o *decider.Options) *decider.Worker {
	var opts decider.Options
	if o != nil {
		opts = *o
	}
	opts.Namespace = cmp.Or(opts.Namespace, string(c.namespace))
	opts.Identity = cmp.Or(opts.Identity, c.name)
	opts.Logger = cmp.Or(opts.Logger, c.log)
	return decider.New(c.conn, &opts)
}

// Activities returns an activity worker on the client's connection: register activities with it,
// then call its Run. The zero value of Namespace, Identity and Logger is the client's.
func (c *Client) Activities(o *activity.Options) *activity.Worker {
	var opts activity.Options
	if o != nil {
		opts = *o
	}
	opts.Namespace = cmp.Or(opts.Namespace, string(c.namespace))
	opts.Identity = cmp.Or(opts.Identity, c.name)
	opts.Logger = cmp.Or(opts.Logger, c.log)
	return activity.New(c.conn, &opts)
}
