package main

import (
	"errors"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func topics() {
	cl := admin()
	defer cl.Close()
	name := topic("made", 3)
	_, err := cl.CreateTopic(deadline(), 1, 1, nil, name)
	refused(err, kerr.TopicAlreadyExists, "creating it twice")
	_, err = cl.CreateTopic(deadline(), 1, 1, nil, "no/slash")
	refused(err, kerr.InvalidTopicException, "a bad name")
	bad, one := unique("bad"), "1"
	_, err = cl.CreateTopic(deadline(), 1, 1, map[string]*string{"no.such": &one}, bad)
	refused(err, kerr.InvalidConfig, "a key nobody knows")
	_, err = cl.CreateTopic(deadline(), 1, 9, nil, bad)
	refused(err, kerr.InvalidReplicationFactor, "nine replicas")
	_, err = cl.ValidateCreateTopics(deadline(), 1, -1, nil, bad)
	fine(err, "validating")

	listed, err := cl.ListTopics(deadline(), name, bad)
	fine(err, "listing")
	ensureEq(len(listed[name].Partitions), 3, "its partitions")
	refused(listed[bad].Err, kerr.UnknownTopicOrPartition, "validating makes nothing")
	id := listed[name].ID
	ensure(id != kadm.TopicID{}, "it has an id")
	_, err = cl.UpdatePartitions(deadline(), 5, name)
	fine(err, "adding partitions")
	fewer, err := cl.UpdatePartitions(deadline(), 4, name)
	fine(err, "asking for fewer partitions")
	refused(fewer[name].Err, kerr.InvalidPartitions, "fewer partitions")
	restart("kill")
	listed, err = cl.ListTopics(deadline(), name)
	fine(err, "listing after a kill")
	ensureEq([]any{len(listed[name].Partitions), listed[name].ID}, []any{5, id}, "partitions and id after a kill")
	for _, p := range listed[name].Partitions {
		ensureEq(p.Replicas, []int32{p.Leader}, "its replicas")
	}
	metadata, err := cl.BrokerMetadata(deadline())
	fine(err, "the brokers")
	ensureEq(metadata.Brokers.NodeIDs(), []int32{metadata.Controller}, "the nodes")
	ensure(metadata.Cluster != "", "the cluster has an id")
	dirs, err := cl.DescribeAllLogDirs(deadline(), nil)
	fine(err, "the log directories")
	ensure(len(slices.Collect(maps.Keys(dirs))) == 1, "one node has some")
	_, err = cl.DeleteTopic(deadline(), name)
	fine(err, "deleting")
	_, err = cl.DeleteTopic(deadline(), name)
	refused(err, kerr.UnknownTopicOrPartition, "deleting it again")
}

func configs() {
	cl := admin()
	defer cl.Close()
	name := topic("set", 1)
	value := func(key string) (string, bool) {
		found, err := cl.DescribeTopicConfigs(deadline(), name)
		fine(err, "describing")
		for _, config := range found[0].Configs {
			if config.Key == key {
				return config.MaybeValue(), config.Source.String() == "DYNAMIC_TOPIC_CONFIG"
			}
		}
		fail("%s is not described", key)
		return "", false
	}
	change := func(op kadm.IncrementalOp, key string, to string) error {
		changes := []kadm.AlterConfig{{Op: op, Name: key, Value: &to}}
		answers, err := cl.AlterTopicConfigs(deadline(), changes, name)
		fine(err, "changing")
		return answers[0].Err
	}
	fine(change(kadm.SetConfig, "retention.ms", "777000"), "setting")
	fine(change(kadm.AppendConfig, "cleanup.policy", "compact"), "appending")
	restart("kill")
	retention, own := value("retention.ms")
	ensureEq([]any{retention, own}, []any{"777000", true}, "what was set, after a kill")
	policy, _ := value("cleanup.policy")
	ensureEq(policy, "delete,compact", "the longer list")
	fine(change(kadm.DeleteConfig, "retention.ms", ""), "deleting")
	_, own = value("retention.ms")
	ensureEq(own, false, "the default is back")
	refused(change(kadm.SetConfig, "no.such", "1"), kerr.InvalidConfig, "a key nobody knows")
	refused(change(kadm.SetConfig, "retention.ms", "soon"), kerr.InvalidConfig, "a value that is none")
	metadata, err := cl.BrokerMetadata(deadline())
	fine(err, "the brokers")
	brokers, err := cl.DescribeBrokerConfigs(deadline(), metadata.Controller)
	fine(err, "the settings of the broker")
	fine(brokers[0].Err, "the settings of the broker")
}

func groups() {
	cl, producer := admin(), client()
	defer cl.Close()
	defer producer.Close()
	name, classic, modern := topic("read", 4), unique("classic"), unique("modern")
	produce(producer, name, 0, 80, 4)
	a := newReader(classic, name, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	b := newReader(modern, name, kgo.ServerSideBalancer())
	until("both groups have committed everything", func() bool {
		return maps.Equal(a.committed(), all(4, 20)) && maps.Equal(b.committed(), all(4, 20))
	})
	listed, err := cl.ListGroups(deadline())
	fine(err, "listing")
	ensureEq([]string{listed[classic].State, listed[modern].State}, []string{"Stable", "Stable"}, "the states")
	typed, err := cl.ListGroupsByType(deadline(), []string{"consumer"})
	fine(err, "listing those of the consumer protocol")
	ensureEq(slices.Collect(maps.Keys(typed)), []string{modern}, "those of the consumer protocol")
	described, err := cl.DescribeGroups(deadline(), classic)
	fine(err, "describing")
	ensureEq([]any{described[classic].State, len(described[classic].Members)}, []any{"Stable", 1}, "the classic group")
	ensureEq(len(described.AssignedPartitions()[name]), 4, "its member's partitions")
	consumers, err := cl.DescribeConsumerGroups(deadline(), modern)
	fine(err, "describing the other")
	ensureEq([]any{consumers[modern].State, len(consumers[modern].Members)}, []any{"Stable", 1}, "the consumer group")
	_, err = cl.DeleteGroup(deadline(), classic)
	refused(err, kerr.NonEmptyGroup, "deleting a group with members")
	// kadm knows the lag of classic groups only.
	lags, err := cl.Lag(deadline(), classic)
	fine(err, "lag")
	lag := lags[classic]
	fine(lag.Error(), "the lag")
	ensureEq(lag.Lag.Total(), int64(0), "the lag")
	a.close()
	b.close()
	for _, id := range []string{classic, modern} {
		var moved kadm.Offsets
		moved.Add(kadm.Offset{Topic: name, Partition: 1, At: 5, LeaderEpoch: -1, Metadata: "back"})
		fine(cl.CommitAllOffsets(deadline(), id, moved), "moving an offset of "+id)
	}
	restart("kill")
	for _, id := range []string{classic, modern} {
		ensureEq(offsets(cl, id, name), map[int32]int64{0: 20, 1: 5, 2: 20, 3: 20}, "the offsets after a kill")
		gone, err := cl.DeleteOffsets(deadline(), id, kadm.TopicsSet{name: {2: {}}})
		fine(err, "deleting an offset")
		fine(gone.Error(), "deleting an offset")
		ensureEq(offsets(cl, id, name), map[int32]int64{0: 20, 1: 5, 3: 20}, "the offsets that are left")
		_, err = cl.DeleteGroup(deadline(), id)
		fine(err, "deleting "+id)
		_, err = cl.DeleteGroup(deadline(), id)
		refused(err, kerr.GroupIDNotFound, "deleting it again")
	}
}

// Offsets by place and time, records deleted, producers described.
func places() {
	cl, producer := admin(), client()
	defer cl.Close()
	defer producer.Close()
	name := topic("places", 2)
	produce(producer, name, 0, 100, 2)
	at := func(listed kadm.ListedOffsets, err error) map[int32]int64 {
		fine(err, "listing offsets")
		fine(listed.Error(), "listing offsets")
		found := map[int32]int64{}
		listed.Each(func(o kadm.ListedOffset) { found[o.Partition] = o.Offset })
		return found
	}
	ensureEq(at(cl.ListStartOffsets(deadline(), name)), all(2, 0), "the first")
	ensureEq(at(cl.ListEndOffsets(deadline(), name)), all(2, 50), "the end")
	ensureEq(at(cl.ListCommittedOffsets(deadline(), name)), all(2, 50), "the stable end")
	ensureEq(at(cl.ListOffsetsAfterMilli(deadline(), 0, name)), all(2, 0), "since 1970")
	producers, err := cl.DescribeProducers(deadline(), kadm.TopicsSet{name: {0: {}}})
	fine(err, "the producers")
	ensureEq(len(producers[name].Partitions[0].ActiveProducers), 1, "the producers")
	var cut kadm.Offsets
	cut.Add(kadm.Offset{Topic: name, Partition: 0, At: 20})
	deleted, err := cl.DeleteRecords(deadline(), cut)
	fine(err, "deleting records")
	fine(deleted.Error(), "deleting records")
	restart("kill")
	ensureEq(at(cl.ListStartOffsets(deadline(), name)), map[int32]int64{0: 20, 1: 0}, "the first after a kill")
	produce(producer, name, 100, 110, 2)
	ensureEq(at(cl.ListEndOffsets(deadline(), name)), all(2, 55), "the end after a kill and more records")
}

// Access rules and credentials are not offered; asking for them says so at once.
func notOffered() {
	cl := admin()
	defer cl.Close()
	_, err := cl.DescribeUserSCRAMs(deadline())
	ensure(err != nil, "credentials were described")
	rules, err := cl.DescribeACLs(deadline(), kadm.NewACLs().AnyResource().Allow().AllowHosts().Deny().DenyHosts().Operations().ResourcePatternType(kadm.ACLPatternAny))
	for _, rule := range rules {
		err = errors.Join(err, rule.Err)
	}
	ensure(err != nil, "access rules were described")
}
