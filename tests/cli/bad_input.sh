#!/bin/sh
# A hundred causes of bad input, as a user meets them: each ends with one message that names what it
# is about, an exit status that is no success and no crash, and no file left behind.
#
# The table below has a line each: NAME | COMMAND | PIECE ; PIECE … Every piece must stand in the
# message, so that it is compared what the message names (file, line, found, expected, remedy), and not
# only that there is one. Commands run in a folder with the files that are made here.
work=$(mktemp -d) || exit 2
mounted=
clean() {
    [ -z "$mounted" ] || umount "$work/full"
    rm -rf "$work"
}
trap clean EXIT
PATH=$PRONY_BUILD:$PATH
export PATH XDG_DATA_HOME="$work/data"
cd "$work" || exit 2
mkdir -p data/prony out empty full

# Data files.
printf '' >empty.csv
printf 'a,b,kind\n' >header.csv
printf '1,2,3,4,x\n1,2,3,y\n' >ragged.csv
printf '1,2,3,4,x\n1,2,,4,y\n' >missing.csv
printf '1,2,3,4,x\n1,2,3,4,\n' >no_label.csv
printf '1,2,3,4,x\n1,oops,3,4,y\n' >word.csv
printf '1,2,3,4,x\n1,nan,3,4,y\n' >nan.csv
printf '1,2,3,4,x\n1,2,1e99,4,y\n' >huge.csv
printf '1,2,"3,4,x\n' >quote.csv
printf '1,"2"3,4,5,x\n' >quoted.csv
printf '1,2,3,4,0.5\n1,2,3,4,x\n' >mixed.csv
printf '1,2,3,4,\000x\n' >nul.csv
printf '1,2,3,4,x\n1,2,3,4,\351\n' >latin.csv
printf 'x\ny\n' >only_label.csv
printf '1,2,3,4,0.25\n2,3,4,5,0.75\n3,4,5,6,1.5\n' >numbers.csv
printf '5,6,7,8,rose\n' >rose.csv
printf '1,2,3\n4,5,6\n' >narrow.csv
printf '1,2,3,4,a\n4,3,2,1,b\n2,2,2,2,c\n' >abc.csv
printf '\000\000\010\002\000\000\000\003\000\000\000\004abcdefghijkl' >four.idx
printf '\000\000\010\001\000\000\000\003\000\001\002' >labels.idx
printf '\000\000\010\001\000\000\000\002\000\001' >two_labels.idx
printf '\000\000\014\001\000\000\000\003\000\000\000\000\377\377\377\377\000\000\000\001' >minus.idx
printf '\000\000\014\001\000\000\000\003\000\000\000\000\000\017\102\100\000\000\000\001' >million.idx
head -c 15 four.idx >cut.idx
printf 'x' | cat four.idx - >long.idx
printf '\000\000\007\001\000\000\000\001x' >type.idx
printf '\000\000\010\000' >rank0.idx
printf '\000\000\010\011' >rank9.idx
printf '\000\000\010\003\000\000' >dims.idx
printf '\000\000\010\002\000\000\000\000\000\000\000\004' >zero.idx
printf '\000\000\016\003\377\377\377\377\377\377\377\377\377\377\377\377' >overflow.idx
printf '\000\000\015\002\000\000\000\001\000\000\000\004\000\000\000\000\177\300\000\000\000\000\000\000\000\000\000\000' >nan.idx
gzip -c four.idx >four.idx.gz
head -c 20 four.idx.gz >cut.idx.gz
{ head -c 30 four.idx.gz && printf 'xxxx' && tail -c +35 four.idx.gz; } >damaged.idx.gz
printf '\037\213\007\000\000\000\000\000\000\003' >method.gz
npy() { # DICTIONARY: a header of version 1, padded to 70 bytes
    printf '\223NUMPY\001\000\106\000%-69s\n' "$1"
}
{ npy "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4)}" && printf '\000\000\200\077%012d' 0; } >four.npy
npy "{'descr': '>f4', 'fortran_order': False, 'shape': (1, 4)}" >big.npy
npy "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 4)}" >fortran.npy
npy "{'descr': '<c8', 'fortran_order': False, 'shape': (1, 4)}" >complex.npy
npy "{'descr': '<f4', 'fortran_order': False}" >shapeless.npy
npy "{'descr': '<f4', 'fortran_order': False, 'shape': ()}" >scalar.npy
npy "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}" >dataless.npy
npy "{'shape': (99999999999999999999, 4)}" >absurd.npy
npy "{'descr':'<f8','fortran_order':False,'shape':(9999999999,9999999999)}" >product.npy
printf '\223NUMPY\011\000\001\000' >version.npy
printf '\223NUMPY\001\000\377\377{' >cut.npy
mkdir half && cp four.idx half/train-images-idx3-ubyte

# Networks.
printf 'input 4 tokens=2\nembedding 3\nflatten\ndense 3\n' >tokens.net
printf 'input 2x3\ndense 4\nadd < input, dense1\n' >sizes.net
mkfifo pipe.net
printf 'input 4\ndens 3\n' >unknown_layer.net
printf 'input 4\ndense\n' >no_units.net
printf 'input 4\ndense three\n' >word.net
printf 'input 4\ndense 0\n' >zero.net
printf 'input 4\ndense 3 bais=0\n' >argument.net
printf 'dense 3\n' >no_input.net
printf 'input 4\ndense 3\nloss mean\n' >loss.net
printf 'input 4\ndense 3\nloss mse\nloss mse\n' >two_losses.net
printf 'input 4\noptimiser sgd\ndense 3\noptimiser adam\n' >two_optimisers.net
printf 'input 4\ndense 3 bias=2\n' >flag.net
printf 'input 4\nbatch_norm epsilon=-1\ndense 3\n' >epsilon.net
printf 'input 4\ndense 3\noptimiser adamm\n' >optimiser.net
printf 'input 4\na = dense 3\nadd < a, b\n' >no_name.net
printf 'input 4\na = dense 3\nb = dense 5\nadd < a, b\n' >shapes.net
printf 'input 1x8x8\nconv 4 kernel=11\n' >kernel.net
printf 'input 99999999999x99999999999\ndense 3\n' >overflow.net
printf 'input 4\ndense 1\nloss binary_cross_entropy\n' >binary.net
printf 'x = input 4\ndense 3\n' >named_input.net
printf 'input 4\nstate.a = dense 3\n' >state.net
printf 'input 4\n\351 = dense 3\n' >latin.net
printf '' >empty.net

# Models.
prony train small iris --epochs 1 --out good >log 2>&1 || { cat log && exit 2; }
prony train mlp:4-1 numbers.csv --epochs 1 --test 0 --out numeric >log 2>&1 || { cat log && exit 2; }
head -c 100 good >cut
head -c 4 good >tiny
head -c -8 good >short
{ printf '\377\377\377\377\377\377\377\177' && tail -c +9 good; } >length
{ head -c 8 good && printf '[' && tail -c +10 good; } >json
sed 's/"F32"/"F99"/' good >type
sed 's/"shape":\[4,3\]/"shape":[3,4]/' good >shape
sed 's/dense1\.weight/dense9.weight/' good >name
sed 's/"training"/"treining"/' good >untrained
sed 's/"classes"/"clusses"/' good >classless
sed 's/best_epoch\\":0/best_epoch\\":1/' good >best
sed 's/samples\\":0/samples\\":x/' good >sum
prony train mlp:4-3 iris --epochs 1 --out three >log 2>&1 || { cat log && exit 2; }
sed 's/versicolor/v\\",\\"olor/' three >classes4
printf '{"not": "a record"}\n' >bad.jsonl
printf 'not json\n' >text.jsonl
printf 'not a database, but long enough to be taken for one at first sight .........\n' >fake.db
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=4k none full 2>/dev/null; then
    mounted=1
    head -c 4096 /dev/zero >full/filled 2>/dev/null
fi

cat >table <<'END'
unknown command | prony trian small iris | 'trian'; did you mean 'train'
no arguments | prony train | NETWORK; DATA
one argument too few | prony train small | prony train
one argument too many | prony train small iris more | prony train
unknown flag | prony train small iris --bach 4 | --bach; did you mean --batch
flag without value | prony train small iris --batch | --batch
flag given twice | prony train small iris --batch 4 --batch 8 | --batch; twice
number expected | prony train small iris --epochs many | --epochs; "many"
whole number expected | prony train small iris --epochs 2.5 | --epochs; "2.5"
batch of zero | prony train small iris --batch 0 | --batch; "0"
absurd batch | prony train small iris --batch 99999999999999999999 | --batch; "99999999999999999999"
negative rate | prony train small iris --rate -1 | --rate; "-1"
rate that is no number | prony train small iris --rate nan | --rate; "nan"
share of one | prony train small iris --test 1 | --test; "1"
shares beyond all | prony train small iris --test 0.5 --validate 0.5 | --validate 0.5; --test 0.5; below 1
goal without value | prony train small iris --until accuracy | --until; 'accuracy'; accuracy=A; loss=L
goal beyond all | prony train small iris --until accuracy=95 | --until; 'accuracy=95'; 0 to 1
goal of what is not | prony train mlp:4-1 numbers.csv --until accuracy=0.9 --validate 0.3 | numbers.csv; accuracy; a loss to reach
patience of zero | prony train small iris --patience 0 | --patience; "0"
threads beyond all | prony train small iris --threads 1000 | --threads; "1000"
negative seed | prony train small iris --seed -1 | --seed; "-1"
memory of zero | prony train small iris --memory 0 | --memory; "0"
unknown backend | prony train small iris --backend reff | 'reff'; did you mean 'ref'
unknown optimiser | prony train small iris --optimiser adamm | 'adamm'
setting of a resumed run | prony train small iris --resume good --rate 1 | --rate; --resume
layers that do not fit | prony train sizes.net iris | sizes.net:3:1; 1×2×3 and 1×2×4; reshape
unknown data | prony train small iriss | 'iriss'; did you mean 'iris'
synthetic without size | prony train small synthetic:100 | 'synthetic:100'; synthetic:ROWSxCOLUMNS; CLASSES
synthetic without rows | prony train small synthetic:0x4:3 | 0 rows; 4 columns; at most
synthetic with more | prony train small synthetic:9x4:3:2 | 'synthetic:9x4:3:2'; synthetic:ROWSxCOLUMNS
synthetic of other classes | prony predict small good synthetic:9x4:5 | 5 classes of its own; expected those of the network
label of synthetic data | prony train small synthetic:9x4:3 --label 2 | synthetic:9x4:3; --label; known
no such file | prony train small nowhere.csv | 'nowhere.csv'; CSV, IDX or NPY
mnist that was not fetched | prony train mlp:784-10 mnist | train-images-idx3-ubyte; tools/setup mnist
folder as data | prony train small empty | empty: found no file train-images-idx3-ubyte
half of a pair | prony train small half | half: found no file train-labels-idx1-ubyte
empty file | prony train small empty.csv | empty.csv:1:1; found nothing; comma-separated numbers
header alone | prony train small header.csv | header.csv:2; found no row below the header
ragged rows | prony train small ragged.csv | ragged.csv:2:7; found 4 values; expected 5
missing value | prony train small missing.csv | missing.csv:2:5; missing value; expected a number
missing label | prony train small no_label.csv | no_label.csv:2:9; missing value; expected a label
word among numbers | prony train small word.csv | word.csv:2:3; 'oops'; expected a number
nan among numbers | prony train small nan.csv | nan.csv:2:3; 'nan'; expected a number
number beyond a float | prony train small huge.csv | huge.csv:2:5; '1e99'; expected a number
open quote | prony train small quote.csv | quote.csv:1:5; expected a closing quote
text behind a quote | prony train small quoted.csv | quoted.csv:1:3; '3'; expected a comma
word among numbers to learn | prony train small mixed.csv | mixed.csv:2:9; 'x'; expected a number as in line 1
bytes that are no text | prony train small nul.csv | nul.csv; NUL at byte 8; expected text
label in Latin-1 | prony train small latin.csv | latin.csv:2:9; 0xE9; expected UTF-8
nothing but labels | prony train small only_label.csv | only_label.csv:1:1; only a label column
unknown label column | prony train small iris --label kind | iris:1:1; 'kind'; a number from 1 to 5
label columns in reverse | prony train small iris --label 3..1 | iris:1:1; '3..1'; the first before the last
last label column unknown | prony train small iris --label 1..kind | iris:1:1; 'kind'; a number from 1 to 5
several labels for one output | prony train mlp:3-6 abc.csv --label 4..5 | abc.csv: found 2 labels a row; expected 1; mlp:3-6
no token | prony train tokens.net abc.csv | abc.csv: row 1, value 2; found 2; a whole number from 0 to 1
label column beyond all | prony train small iris --label 9 | iris:1:1; '9'; from 1 to 5
CSV beyond memory | prony train small iris --memory 0.001 | iris; bytes of CSV; NPY files are streamed; --memory
labels beside CSV | prony train small abc.csv --labels labels.idx | abc.csv; --labels labels.idx; --label COLUMN
label column of an array | prony train small four.idx --label 2 | four.idx; --labels FILE
array without labels | prony train small four.idx | four.idx: found no labels; --labels FILE
fewer labels than rows | prony train small four.idx --labels two_labels.idx | two_labels.idx: found 2 labels; 3 rows; four.idx
negative class | prony train small four.idx --labels minus.idx | minus.idx: row 2; found the label -1
millions of classes | prony train small four.idx --labels million.idx | million.idx: row 2; found the label 1000000; 65535
labels that are text | prony train small four.idx --labels abc.csv | abc.csv: found neither an IDX nor an NPY header
cut IDX | prony train small cut.idx --labels labels.idx | cut.idx: found 3 bytes of data; expected 12; complete
IDX with a tail | prony train small long.idx --labels labels.idx | long.idx: found 13 bytes of data; expected 12
IDX of unknown type | prony train small type.idx | type.idx; 0x07; 08 09 0b
IDX without dimensions | prony train small rank0.idx | rank0.idx: found 0 dimensions; 1 to 8
IDX of too many dimensions | prony train small rank9.idx | rank9.idx: found 9 dimensions; 1 to 8
IDX with half a header | prony train small dims.idx | dims.idx: found 6 bytes; header of 16
IDX without rows | prony train small zero.idx | zero.idx: found 0 as dimension 1; at least 1
IDX beyond any memory | prony train small overflow.idx | overflow.idx; product; beyond any memory
IDX with nan | prony train small nan.idx | nan.idx: row 1, value 2; found nan; expected a number
cut gzip | prony train small cut.idx.gz | cut.idx.gz: found; complete gzip file
damaged gzip | prony train small damaged.idx.gz | damaged.idx.gz: found
unknown way of packing | prony train small method.gz | method.gz; unknown way of packing
big-endian NPY | prony train small big.npy | big.npy; '>f4'; expected the type '<f4'; astype
NPY of complex numbers | prony train small complex.npy | complex.npy; '<c8'; expected the type
NPY in Fortran order | prony train small fortran.npy | fortran.npy; True; ascontiguousarray
NPY without shape | prony train small shapeless.npy | shapeless.npy; without 'shape'
NPY that is one number | prony train small scalar.npy | scalar.npy; single number; with rows
NPY without its data | prony train small dataless.npy | dataless.npy: found 0 bytes of data; expected 48
NPY of absurd size | prony train small absurd.npy | absurd.npy; 63 bits
NPY whose product overflows | prony train small product.npy | product.npy; beyond any memory
NPY of unknown version | prony train small version.npy | version.npy: found NPY version 9; 1, 2 or 3
cut NPY | prony train small cut.npy | cut.npy; header of 65535 bytes; complete
too many columns | prony train mlp:3-2 iris | iris; found 4 feature columns; expected 3; mlp:3-2
too few outputs | prony train mlp:4-2 iris | found 2 outputs; 3 classes
three classes for a binary loss | prony train binary.net iris | iris; found 3 classes; expected 2; binary.net
unknown network | prony train smal iris | 'smal'; did you mean 'small'
empty network | prony explain empty.net | empty.net
network that is a pipe | prony explain pipe.net | pipe.net; found a device or a pipe; expected a file
unknown layer | prony explain unknown_layer.net | unknown_layer.net:2:1; 'dens'; 'dense'
name of the input | prony explain named_input.net | named_input.net:1:5; a name before 'input'; before a layer
name that files use | prony explain state.net | state.net:2:1; 'state.a'; expected another
network in Latin-1 | prony explain latin.net | latin.net:2:1; 0xE9; UTF-8
loss given twice | prony explain two_losses.net | two_losses.net:4:1; twice; line 3
optimiser given twice | prony explain two_optimisers.net | two_optimisers.net:4:1; twice; line 2
neither yes nor no | prony explain flag.net | flag.net:2:14; bias is '2'; expected 0 or 1
impossible epsilon | prony explain epsilon.net | epsilon.net:2; epsilon is -1
layer without its argument | prony explain no_units.net | no_units.net:2; units
argument that is a word | prony explain word.net | word.net:2:7; 'three'
layer of no units | prony explain zero.net | zero.net:2
unknown argument | prony explain argument.net | argument.net:2:9; 'bais'; bias=1
network without input | prony explain no_input.net | no_input.net:1; input
unknown loss | prony explain loss.net | loss.net:3; 'mean'; mse
unknown optimiser in a network | prony explain optimiser.net --phase training | optimiser.net; 'adamm'
unknown name in a network | prony explain no_name.net | no_name.net:3; 'b'
shapes that do not fit | prony explain shapes.net | shapes.net:4; 3; 5
kernel larger than its image | prony explain kernel.net | kernel.net:2; 11
shape product that overflows | prony explain overflow.net | overflow.net:1
mlp without sizes | prony explain mlp: | mlp:; 4-16-3
mlp of words | prony explain mlp:4-x-3 | mlp:4-x-3
mlp of unknown activation | prony explain mlp:4-3:sin | 'sin'; sigmoid
unknown phase | prony explain small --phase learning | --phase; 'learning'; training
absurd batch to explain | prony explain large --batch 999999999999 | --batch; "999999999999"
network beyond memory | prony train mlp:4-1000000000-1000000000-3 iris | out of memory; this machine allows
diverging training | prony train mlp:4-16-16-3 iris --rate 100000 --out out/model | epoch 1; --rate below 100000
no weights | prony predict small nowhere iris | nowhere: cannot open
folder as weights | prony predict small empty iris | empty: found a folder; expected a file
cut weights | prony predict small cut iris | cut: found a header; file of 100; complete
four bytes of weights | prony predict small tiny iris | tiny: found 4 bytes; safetensors
weights without their end | prony predict small short iris | short: tensor
absurd header length | prony predict small length iris | length: found a header of 9223372036854775807 bytes; complete
header that is no JSON | prony predict small json iris | json:1
unknown tensor type | prony predict small type iris | type: tensor; 'F99'; expected F32
tensor of another shape | prony predict small shape iris | shape: tensor 'dense1.weight'; expected
unknown tensor | prony predict small name iris | name; dense
weights that are no training | prony train small iris --resume untrained | untrained: found no 'training'; prony train
weights without classes | prony predict small classless iris | classless: found no 'classes'
training with a best epoch of none | prony train small iris --resume best --epochs 2 | best: found the best epoch; held no rows out
training whose sums are no numbers | prony train small iris --resume sum --epochs 2 | sum, metadata 'training'; 'x'
weights of more classes than outputs | prony predict mlp:4-3 classes4 four.idx | mlp:4-3: found 4 classes; 3 outputs
weights of another network | prony predict mlp:4-3 good iris | good: found the weights of another network (line 1 is '#; mlp:4-3; name their network
training on other data | prony train small abc.csv --resume good | good: found a training on other data; abc.csv; without --resume
unknown class | prony predict small good rose.csv | rose.csv:1:9; 'rose'; one of 3; 'setosa'
too few columns to predict | prony predict small good narrow.csv | narrow.csv; found
folder that is not there | prony train small iris --epochs 1 --out nowhere/model | nowhere/model; No such file
output without a name | prony train small iris --epochs 1 --out= | found an empty text; expected --out FILE
folder as output | prony train small iris --epochs 1 --out empty | empty
predictions into no folder | prony predict small good iris --out nowhere/said.csv | nowhere/said.csv; No such file
unknown framework to bench | prony bench small --framework nonesuch | nonesuch
unknown phase to bench | prony bench small --phase learn | phase; learn
unknown axis in a rule | prony bench small --skip colour=red | colour
batch that is a word to bench | prony bench small --batch many | batch; many
unknown format to bench | prony bench small --format xml | --format; "xml"; json
no such records | prony store add nowhere.jsonl --store out/s.db | nowhere.jsonl
records that are no JSON | prony store add text.jsonl --store s.db | text.jsonl:1
records that are something else | prony store add bad.jsonl --store s.db | bad.jsonl:1
unknown store command | prony store ad bad.jsonl | "ad"; expected add, check
store that is none | prony store list --store fake.db | fake.db
unknown result | prony store show 999 --store s.db | 999
unknown key in where | prony store list --where colour=red --store s.db | "colour"; expected an axis
END
if [ -n "$mounted" ]; then
    cat >>table <<'END'
full disk | prony train small iris --epochs 1 --out full/model | full/model; No space left
full disk for predictions | prony predict small good iris --out full/said.csv | full/said.csv; No space left
END
else
    echo "skip bad_input.full_disk: a small file system can only be mounted by root"
fi

failures=0 count=0
# What is there, but for the store that records are refused by, and the message of the moment.
look() { find . ! -name 's.db*' ! -name message ! -name seen; }
look >seen
while IFS='|' read -r name command pieces; do
    name=$(echo "$name" | sed 's/ *$//; s/ /_/g')
    count=$((count + 1))
    problem=
    timeout 60 sh -c "$command" >/dev/null 2>message </dev/null
    status=$?
    [ $status -ne 0 ] && [ $status -lt 124 ] || problem="exit status $status"
    [ "$(grep -v '^prony: warning: ' message | grep -c '^prony: ')" -eq 1 ] ||
        problem="$problem; not one message"
    remaining=$pieces
    while [ -n "$remaining" ]; do
        piece=$(echo "${remaining%%;*}" | sed 's/^ *//; s/ *$//')
        grep -qF -- "$piece" message || problem="$problem; does not name <$piece>"
        case $remaining in *";"*) remaining=${remaining#*;} ;; *) remaining= ;; esac
    done
    rm -f message
    if [ -n "$problem" ]; then
        sh -c "$command" 2>&1 </dev/null | tail -n 3
        echo "bad_input.$name: $command: $problem"
        echo "FAIL bad_input.$name"
        failures=1
    else
        echo "ok   bad_input.$name"
    fi
done <table
if look | cmp -s - seen; then
    echo "ok   bad_input.leaves_nothing_behind"
else
    look | diff seen -
    echo "FAIL bad_input.leaves_nothing_behind"
    failures=1
fi
if [ $count -ge 100 ]; then
    echo "ok   bad_input.has_$count""_causes"
else
    echo "FAIL bad_input.has_$count""_causes"
    failures=1
fi
exit $failures
