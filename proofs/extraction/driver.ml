(* Reads one instance a line, and prints what the definitions make of it, one line each: the name
   of a quantity, sizes, and then lists of numbers, all separated by blanks; a list begins with its
   length. *)

open Definitions

let next () = Scanf.scanf " %s" Fun.id
let int () = int_of_string (next ())

(* R is OCaml's float, but the interface of the extracted module hides that. *)
let number () : RbaseSymbolsImpl.coq_R = Obj.magic (float_of_string (next ()))
let float_of (value : RbaseSymbolsImpl.coq_R) : float = Obj.magic value

let list item = let n = int () in List.init n (fun _ -> item ())
let numbers () = list number
let rows () = list numbers

let show values =
  let written value = Printf.sprintf "%h" (float_of value) in
  print_endline (String.concat " " (List.map written values))

let task f =
  let m = int () in let n = int () in let count = int () in
  let w = rows () in let x = numbers () in let y = rows () in
  f m n count w x y

let ranked f = task (fun m n count w x y -> f m n count w x y (list int))

let selecting f =
  let dx = int () in let dy = int () in let count = int () in let gamma = number () in
  let x = numbers () in let y = rows () in let r = numbers () in
  show (f dx dy count gamma x y r)

let block () =
  let d = int () in let k = int () in let h = int () in let count = int () in
  let q = rows () in let key = rows () in let v = rows () in let o = rows () in
  let m1 = rows () in let m2 = rows () in let b1 = numbers () in let b2 = numbers () in
  let x = rows () in let masked = int () = 1 in
  show (x_block d k h count q key v o m1 m2 b1 b2 x masked)

(* The matrices of the heads, what the layers make of tokens, or all tokens at the end. *)
let construction f =
  let what = next () in
  let dx = int () in let dy = int () in let queries = int () in let count = int () in
  let w = rows () in let values = numbers () in let es = rows () in
  let x = rows () in let y = rows () in let r = numbers () in
  let (heads, layers), tokens = f dx dy queries count w values es x y r in
  let asked = match what with "heads" -> heads | "layers" -> layers | _ -> tokens in
  show (List.concat (asked ()))

let one_query f = construction (fun dx dy _ count -> f dx dy count)

let rec serve () =
  match next () with
  | "" -> ()
  | name ->
    (match name with
     | "scores" -> show (task x_scores)
     | "law" -> show [ranked x_law]
     | "loss" -> show [ranked x_loss]
     | "gradient" -> show (ranked x_gradient)
     | "tail_means" -> show (ranked x_tail_means)
     | "second" -> let f = ranked x_second in show [f (rows ())]
     | "online" ->
       let f = task x_online in let t = int () in show [f t (list int)]
     | "records" -> let n = int () in print_endline (string_of_int (x_records n (numbers ())))
     | "attention" -> selecting x_attention
     | "selected" -> selecting x_selected
     | "block" -> block ()
     | "plackett_luce" -> one_query x_plackett_luce
     | "causal" -> one_query x_causal
     | "printed" -> one_query x_printed
     | "constant_depth" -> one_query x_constant_depth
     | "bradley_terry" -> one_query x_bradley_terry
     | "field" -> one_query (fun dx dy count w _ es x y _ -> x_field dx dy count w es x y)
     | "multi_query" ->
       let pairs = int () in
       construction (fun dx dy queries count w values es x y r ->
         x_multi_query dx dy queries count w values es x y r pairs)
     | other -> failwith other);
    serve ()

let () = serve ()
