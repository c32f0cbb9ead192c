# For tests of peers, after command.sh.

# relay NAME COMMAND [REQUEST]: a peer that answers as prony does, and before each run, or such a request,
# does this first.
relay() {
    cat >"$folder/$1" <<PEER
#!/bin/sh
mkfifo "$folder/$1.asked.\$\$" "$folder/$1.answered.\$\$"
"$prony" peer <"$folder/$1.asked.\$\$" >"$folder/$1.answered.\$\$" &
exec 3>"$folder/$1.asked.\$\$" 4<"$folder/$1.answered.\$\$"
while read -r line; do
    case \$line in *'"do":"${3:-run}"'*) $2 ;; esac
    printf '%s\n' "\$line" >&3
    read -r line <&4
    printf '%s\n' "\$line"
done
PEER
    chmod +x "$folder/$1"
}
