#!/bin/bash
# Compiles crossover.p4, starts a switch as root, runs the packet tests, and ends the switch by its name.
set -x
p4c --target bmv2 --arch v1model --p4runtime-files crossover.p4info.txtpb crossover.p4
/bin/rm -f ss-log.txt
sudo simple_switch_grpc --log-file ss-log --log-flush --dump-packet-data 10000 -i 0@veth0 -i 1@veth2 --no-p4 &
sleep 2
sudo ${P4_EXTRA_SUDO_OPTS} `which ptf` -i 0@veth1 -i 1@veth3 \
    --test-params="grpcaddr='localhost:9559';p4info='crossover.p4info.txtpb';config='crossover.json'" --test-dir tests
sleep 1
sudo pkill --signal 9 --list-name simple_switch
sleep 1
pgrep simple_switch || echo "no switch is left"
