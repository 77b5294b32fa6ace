import { Loading } from "../parts/states";

export function Fleet() {
  return <Loading />;
}
