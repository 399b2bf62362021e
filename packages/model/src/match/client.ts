/** Who connects. Both may cost a system call, so they are read only by what needs them. */
export interface Client {
  readonly address: string;
  readonly port: number;
}
