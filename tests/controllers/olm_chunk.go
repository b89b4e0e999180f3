package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"hash/fnv"

	"helm.sh/helm/v3/pkg/release"
)

// mostParts is how many Secrets OLM gives one record.
const mostParts = 11

// stored is a record's JSON. Helm keeps a release's labels on the Secret and out of the body; OLM keeps them in it.
type stored struct {
	*release.Release
	Labels map[string]string `json:"labels,omitempty"`
}

// part is some bytes of a packed record.
type part []byte

// chunkNames spells the names of chunks.
var chunkNames = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz123456").WithPadding(base32.NoPadding)

// secret is the name of the Secret that holds this part of an index' record: the same bytes, the same name.
func (p part) secret(index string) string {
	hash := fnv.New64a()
	hash.Write(p)
	return index + "-" + chunkNames.EncodeToString(hash.Sum(nil))
}

// split packs a record and cuts it into at least one part.
func split(r *release.Release, size int) ([]part, error) {
	packed := &bytes.Buffer{}
	zip := gzip.NewWriter(packed)
	if err := json.NewEncoder(zip).Encode(stored{Release: r, Labels: r.Labels}); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	var parts []part
	for packed.Len() > 0 {
		parts = append(parts, bytes.Clone(packed.Next(size)))
	}
	if len(parts) > mostParts {
		return nil, fmt.Errorf("release %s needs %d Secrets, and %d is the most", r.Name, len(parts), mostParts)
	}
	return parts, nil
}

// unpack is the way back.
func unpack(packed []byte) (*release.Release, error) {
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	var record stored
	if err := json.NewDecoder(zip).Decode(&record); err != nil {
		return nil, err
	}
	if record.Release == nil {
		return nil, fmt.Errorf("the record holds no release")
	}
	record.Release.Labels = record.Labels
	return record.Release, nil
}
