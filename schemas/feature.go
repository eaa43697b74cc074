package schemas

import "strings"

// Feature names what brokers can do since the release that brought it. A broker announces its
// features, and a worker that needs one which a broker lacks does not serve. The names stay.
type Feature string

// The features. A worker of workflow code needs all of them.
const (
	FeatureAllOrNothing     Feature = "allOrNothing"     // DecisionReply.allOrNothing
	FeatureAgain            Feature = "again"            // DecisionReply.again
	FeatureStartedAt        Feature = "startedAt"        // DecisionTask.startedAt
	FeatureTell             Feature = "tell"             // the option tell of decisions about others
	FeatureFinal            Feature = "final"            // Report.final
	FeatureNonDeterministic Feature = "nonDeterministic" // the cause NON_DETERMINISTIC
)

// FeaturesKey is where a broker announces its features, separated by spaces: in the metadata of its
// micro service, which answers a request to [BrokersSubject]. Its namespace and node are there, too.
const FeaturesKey = "features"

// BrokersSubject is that of a request which every broker of the account answers with who it is.
const BrokersSubject = "$SRV.PING.drover"

// Features returns those of this release.
func Features() []Feature {
	return []Feature{
		FeatureAllOrNothing, FeatureAgain, FeatureStartedAt, FeatureTell, FeatureFinal,
		FeatureNonDeterministic,
	}
}

// FeatureNames returns the names, separated by spaces.
func FeatureNames(features []Feature) string {
	var all strings.Builder
	for n, f := range features {
		if n > 0 {
			all.WriteByte(' ')
		}
		all.WriteString(string(f))
	}
	return all.String()
}
